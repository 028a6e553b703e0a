#include "ring.h"
#if defined(__linux__)
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace k3::uring {
namespace {

uint32_t load_acquire(const uint32_t* word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
void store_release(uint32_t* word, uint32_t value) { __atomic_store_n(word, value, __ATOMIC_RELEASE); }

}  // namespace

Refusal Ring::open(uint32_t entries) {
  io_uring_params params = {};
  fd_ = static_cast<int>(syscall(__NR_io_uring_setup, entries, &params));
  if (fd_ < 0) return {"io_uring_setup", errno};
  const auto map = [&](size_t bytes, uint64_t offset) {
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_, static_cast<off_t>(offset));
    return p == MAP_FAILED ? nullptr : p;
  };
  queue_bytes_[0] = params.sq_off.array + params.sq_entries * sizeof(uint32_t);
  queue_bytes_[1] = params.cq_off.cqes + params.cq_entries * sizeof(io_uring_cqe);
  entries_bytes_ = params.sq_entries * sizeof(io_uring_sqe);
  queues_[0] = map(queue_bytes_[0], IORING_OFF_SQ_RING);
  queues_[1] = map(queue_bytes_[1], IORING_OFF_CQ_RING);
  entries_ = static_cast<io_uring_sqe*>(map(entries_bytes_, IORING_OFF_SQES));
  if (!queues_[0] || !queues_[1] || !entries_) return {"mmap", errno};

  uint8_t *sq = static_cast<uint8_t*>(queues_[0]), *cq = static_cast<uint8_t*>(queues_[1]);
  const auto word = [](uint8_t* base, uint32_t offset) { return reinterpret_cast<uint32_t*>(base + offset); };
  sq_head_ = word(sq, params.sq_off.head);
  sq_tail_ = word(sq, params.sq_off.tail);
  sq_array_ = word(sq, params.sq_off.array);
  sq_mask_ = *word(sq, params.sq_off.ring_mask);
  cq_head_ = word(cq, params.cq_off.head);
  cq_tail_ = word(cq, params.cq_off.tail);
  cq_mask_ = *word(cq, params.cq_off.ring_mask);
  completions_ = reinterpret_cast<io_uring_cqe*>(cq + params.cq_off.cqes);
  filled_ = *sq_tail_;
  return {};
}

Ring::~Ring() {
  for (int i = 0; i < 2; ++i)
    if (queues_[i]) munmap(queues_[i], queue_bytes_[i]);
  if (entries_) munmap(entries_, entries_bytes_);
  if (fd_ >= 0) close(fd_);
}

io_uring_sqe* Ring::next() {
  const uint32_t index = filled_++ & sq_mask_;
  sq_array_[index] = index;
  memset(&entries_[index], 0, sizeof(io_uring_sqe));
  return &entries_[index];
}

int Ring::submit_and_wait() {
  store_release(sq_tail_, filled_);
  const uint32_t waiting = filled_ - load_acquire(sq_head_);
  const long taken = syscall(__NR_io_uring_enter, fd_, waiting, 1u, IORING_ENTER_GETEVENTS, nullptr, size_t{0});
  return taken < 0 ? errno : 0;
}

bool Ring::take_back(uint64_t* user_data) {
  if (filled_ == load_acquire(sq_head_)) return false;
  *user_data = entries_[--filled_ & sq_mask_].user_data;
  store_release(sq_tail_, filled_);
  return true;
}

bool Ring::pop(io_uring_cqe* completion) {
  const uint32_t head = *cq_head_;
  if (head == load_acquire(cq_tail_)) return false;
  *completion = completions_[head & cq_mask_];
  store_release(cq_head_, head + 1);
  return true;
}

}  // namespace k3::uring
#endif
