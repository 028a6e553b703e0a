// One thread that keeps `depth` requests in flight on each drive in one ring and sleeps in the kernel otherwise.
#include <errno.h>

#include "backend.h"
#if defined(__linux__)
#include <k3/thread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "block_queue.h"
#include "buffer_table.h"
#include "ring.h"

namespace k3::uring {
namespace {

constexpr ThreadSpec kThread = {"k3-uring", 256 << 10};
constexpr uint64_t kWakeUp = ~uint64_t{0};  // user_data of the read that push() completes

bool worth_retrying(int error) { return error == EINTR || error == EAGAIN || error == EBUSY; }

class UringBackend : public Backend {
 public:
  explicit UringBackend(uint32_t drives) : meter_(drives), free_(drives) {}

  ~UringBackend() override {
    if (started_) {
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        ending_ = true;
      }
      wake();
      pthread_join(thread_, nullptr);
    }
    if (buffers_) buffers_->ring_ends();
    if (wake_ >= 0) close(wake_);
  }

  Refusal start(uint32_t depth, bool registers) {
    wake_ = eventfd(0, EFD_CLOEXEC);
    if (wake_ < 0) return {"eventfd", errno};
    const uint32_t slots = depth * static_cast<uint32_t>(free_.size());
    if (const Refusal refusal = ring_.open(slots + 1); refusal.stage) return refusal;
    if (const Refusal refusal = try_a_read(); refusal.stage) return refusal;
    buffers_ = registers ? BufferTable::open(ring_.fd()) : BufferTable::empty();
    in_flight_.resize(slots);
    for (uint32_t slot = 0; slot < slots; ++slot) free_[slot % free_.size()].push_back(slot);
    if (const int error = start_thread(&thread_, kThread, thread_main, this)) return {"pthread_create", error};
    started_ = true;
    return {};
  }

  void push(std::vector<Block> blocks) override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (Block& block : blocks) queue_.push(std::move(block));
    }
    wake();
  }

  void hurry(const Batch* batch) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    queue_.hurry(batch);
  }

  void give_up(const Batch* batch) override { fail_waiting(batch, ECANCELED); }

  std::vector<DriveUse> use() const override { return meter_.use(); }

  Registration registration() const override { return buffers_->registration(); }

 private:
  static void* thread_main(void* self) {
    static_cast<UringBackend*>(self)->run();
    return nullptr;
  }

  // Kernels that set a ring up may still refuse to enter it, or not know this kind of request.
  Refusal try_a_read() {
    wake();
    arm_wake_up();
    if (const int error = ring_.submit_and_wait()) return {"io_uring_enter", error};
    io_uring_cqe completion;
    if (!ring_.pop(&completion)) return {"io_uring_enter", EIO};
    if (completion.res < 0) return {"IORING_OP_READ", -completion.res};
    return {};
  }

  void wake() {
    const uint64_t one = 1;
    while (write(wake_, &one, sizeof one) < 0 && errno == EINTR) continue;
  }

  void arm_wake_up() {
    io_uring_sqe* entry = ring_.next();
    entry->opcode = IORING_OP_READ;
    entry->fd = wake_;
    entry->addr = reinterpret_cast<uintptr_t>(&wake_count_);
    entry->len = sizeof wake_count_;
    entry->user_data = kWakeUp;
  }

  void run() {
    arm_wake_up();
    for (;;) {
      if (is_ending() && requested_ == 0) return;
      start_waiting();
      const int error = ring_.submit_and_wait();
      if (error) submit_refused(error);
      for (io_uring_cqe completion; ring_.pop(&completion);) completed(completion);
    }
  }

  // True once the reader is going away: then nothing new is requested.
  bool is_ending() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!ending_) return false;
    }
    fail_waiting(nullptr, ECANCELED);
    return true;
  }

  // One block for each drive in turn, so that few blocks are spread over all.
  void start_waiting() {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (bool started = true; started;) {
      started = false;
      for (uint32_t drive = 0; drive < free_.size(); ++drive) {
        if (free_[drive].empty()) continue;
        const uint32_t slot = free_[drive].back();
        if (!queue_.pop(drive, &in_flight_[slot])) continue;
        free_[drive].pop_back();
        ++requested_;
        request(slot);
        started = true;
      }
    }
  }

  void request(uint32_t slot) {
    const Block& block = in_flight_[slot];
    meter_.starts(block.drive());
    const int buffer = buffers_->index_of(block);
    io_uring_sqe* entry = ring_.next();
    entry->opcode = buffer >= 0 ? IORING_OP_READ_FIXED : IORING_OP_READ;
    entry->fd = block.file();
    entry->off = block.offset();
    entry->addr = reinterpret_cast<uintptr_t>(block.target());
    entry->len = block.bytes();
    entry->buf_index = static_cast<uint16_t>(buffer >= 0 ? buffer : 0);
    entry->user_data = slot;
  }

  void completed(const io_uring_cqe& completion) {
    if (completion.user_data == kWakeUp) return arm_wake_up();
    const uint32_t slot = static_cast<uint32_t>(completion.user_data);
    meter_.ends(in_flight_[slot].drive(), completion.res);
    if (in_flight_[slot].advance(completion.res) == Block::Step::again) return request(slot);
    release(slot);
  }

  void release(uint32_t slot) {
    free_[slot % free_.size()].push_back(slot);
    --requested_;
  }

  // Out of memory for requests is a matter of time. Anything else ends what the kernel has not accepted; what it has
  // is still writing into the regions and is waited for by looking.
  void submit_refused(int error) {
    if (!worth_retrying(error)) {
      bool deaf = false;
      for (uint64_t slot; ring_.take_back(&slot);) {
        if (slot == kWakeUp) {
          deaf = true;
          continue;
        }
        meter_.ends(in_flight_[slot].drive(), 0);
        in_flight_[slot].fail(error);
        release(static_cast<uint32_t>(slot));
      }
      if (deaf) arm_wake_up();  // or a later push() would wake nobody
      fail_waiting(nullptr, error);
    }
    const timespec pause = {0, 1000000};
    if (error != EINTR) nanosleep(&pause, nullptr);
  }

  // Without a batch: everything that waits.
  void fail_waiting(const Batch* batch, int error) {
    std::vector<Block> dropped;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      dropped = queue_.remove(batch);
    }
    for (Block& block : dropped) block.fail(error);
  }

  Ring ring_;
  int wake_ = -1;
  uint64_t wake_count_ = 0;
  std::shared_ptr<BufferTable> buffers_;
  DriveMeter meter_;
  pthread_t thread_;
  bool started_ = false;

  std::mutex mutex_;
  BlockQueue queue_;
  bool ending_ = false;

  // The thread's own. Slot s is one of drive s mod drives.
  std::vector<Block> in_flight_;
  std::vector<std::vector<uint32_t>> free_;
  uint32_t requested_ = 0;
};

}  // namespace

std::unique_ptr<Backend> start_uring(uint32_t depth, uint32_t drives, bool registers, Refusal* refusal) {
  auto backend = std::make_unique<UringBackend>(drives);
  *refusal = backend->start(depth, registers);
  if (refusal->stage) return nullptr;
  return backend;
}

}  // namespace k3::uring
#else
namespace k3::uring {
std::unique_ptr<Backend> start_uring(uint32_t, uint32_t, bool, Refusal* refusal) {
  *refusal = {"io_uring_setup", ENOSYS};
  return nullptr;
}
}  // namespace k3::uring
#endif
