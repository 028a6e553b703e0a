// Threads that each read one block at a time from their drive.
#include <errno.h>
#include <k3/thread.h>
#include <unistd.h>

#include <list>

#include "backend.h"
#include "block_queue.h"

namespace k3::uring {
namespace {

constexpr ThreadSpec kThread = {"k3-pread", 256 << 10};

class PreadBackend : public Backend {
 public:
  explicit PreadBackend(uint32_t drives) : meter_(drives) {}

  ~PreadBackend() override {
    std::vector<Block> dropped;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ending_ = true;
      dropped = queue_.remove(nullptr);
    }
    work_or_end_.notify_all();
    for (Block& block : dropped) block.fail(ECANCELED);
    for (Worker& worker : workers_) pthread_join(worker.thread, nullptr);
  }

  int start(uint32_t depth, uint32_t drives) {
    for (uint32_t i = 0; i < depth * drives; ++i) {
      workers_.push_back({this, i % drives, {}});
      const int error = start_thread(&workers_.back().thread, kThread, thread_main, &workers_.back());
      if (error == 0) continue;
      workers_.pop_back();
      return error;
    }
    return 0;
  }

  void push(std::vector<Block> blocks) override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (Block& block : blocks) queue_.push(std::move(block));
    }
    work_or_end_.notify_all();
  }

  void hurry(const Batch* batch) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    queue_.hurry(batch);
  }

  void give_up(const Batch* batch) override {
    std::vector<Block> dropped;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      dropped = queue_.remove(batch);
    }
    for (Block& block : dropped) block.fail(ECANCELED);
  }

  std::vector<DriveUse> use() const override { return meter_.use(); }
  Registration registration() const override { return {}; }

 private:
  struct Worker {
    PreadBackend* backend;
    uint32_t drive;
    pthread_t thread;
  };

  static void* thread_main(void* self) {
    const Worker* worker = static_cast<Worker*>(self);
    worker->backend->read_blocks(worker->drive);
    return nullptr;
  }

  void read_blocks(uint32_t drive) {
    for (Block block; take(drive, &block);) {
      int64_t result;
      do {
        meter_.starts(drive);
        result = pread(block.file(), block.target(), block.bytes(), static_cast<off_t>(block.offset()));
        if (result < 0) result = -errno;
        meter_.ends(drive, result);
      } while (block.advance(result) == Block::Step::again);
    }
  }

  bool take(uint32_t drive, Block* block) {
    std::unique_lock<std::mutex> lock(mutex_);
    bool taken = false;
    work_or_end_.wait(lock, [&] { return (taken = queue_.pop(drive, block)) || ending_; });
    return taken;
  }

  DriveMeter meter_;
  std::mutex mutex_;
  std::condition_variable work_or_end_;
  BlockQueue queue_;
  bool ending_ = false;
  std::list<Worker> workers_;  // a list: threads keep the address of theirs
};

}  // namespace

std::unique_ptr<Backend> start_threads(uint32_t depth, uint32_t drives, Refusal* refusal) {
  auto backend = std::make_unique<PreadBackend>(drives);
  if (const int error = backend->start(depth, drives)) {
    *refusal = {"pthread_create", error};
    return nullptr;
  }
  return backend;
}

}  // namespace k3::uring
