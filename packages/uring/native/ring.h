// One io_uring through its system calls: the shared queues, and nothing about what is read.
#pragma once
#if defined(__linux__)
#include <linux/io_uring.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "region.h"

// The numbers of every 64-bit Linux; older C libraries do not name them.
#if !defined(__NR_io_uring_setup)
#define __NR_io_uring_setup 425
#define __NR_io_uring_enter 426
#define __NR_io_uring_register 427
#endif

namespace k3::uring {

class Ring {
 public:
  Ring() = default;
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // Room for `entries` requests in flight. The refusal's error is 0 on success.
  Refusal open(uint32_t entries);
  int fd() const { return fd_; }

  // The next free entry, zeroed; the caller never has more requests in flight than `entries`.
  io_uring_sqe* next();
  // Hands what next() gave to the kernel and waits for at least one completion. 0 or an error number.
  int submit_and_wait();
  // Takes back the last request the kernel has not accepted: its user_data. False when there is none.
  bool take_back(uint64_t* user_data);
  bool pop(io_uring_cqe* completion);

 private:
  int fd_ = -1;
  void* queues_[2] = {nullptr, nullptr};
  size_t queue_bytes_[2] = {0, 0};
  io_uring_sqe* entries_ = nullptr;
  size_t entries_bytes_ = 0;
  uint32_t *sq_head_ = nullptr, *sq_tail_ = nullptr, *sq_array_ = nullptr, sq_mask_ = 0, filled_ = 0;
  uint32_t *cq_head_ = nullptr, *cq_tail_ = nullptr, cq_mask_ = 0;
  io_uring_cqe* completions_ = nullptr;
};

}  // namespace k3::uring
#endif
