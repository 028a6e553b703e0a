// Threads that each read one block at a time.
#include <errno.h>
#include <k3/thread.h>
#include <unistd.h>

#include "backend.h"

namespace k3::uring {
namespace {

constexpr ThreadSpec kThread = {"k3-pread", 256 << 10};

class PreadBackend : public Backend {
 public:
  ~PreadBackend() override {
    std::deque<Block> dropped;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ending_ = true;
      dropped.swap(queue_);
    }
    work_or_end_.notify_all();
    for (Block& block : dropped) block.fail(ECANCELED);
    for (pthread_t thread : threads_) pthread_join(thread, nullptr);
  }

  int start(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      pthread_t thread;
      if (const int error = start_thread(&thread, kThread, thread_main, this)) return error;
      threads_.push_back(thread);
    }
    return 0;
  }

  void push(std::vector<Block> blocks) override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (Block& block : blocks) queue_.push_back(std::move(block));
    }
    work_or_end_.notify_all();
  }

  Registration registration() const override { return {}; }

 private:
  static void* thread_main(void* self) {
    static_cast<PreadBackend*>(self)->read_blocks();
    return nullptr;
  }

  void read_blocks() {
    for (Block block; take(&block);) {
      int64_t result;
      do {
        result = pread(block.file(), block.target(), block.bytes(), static_cast<off_t>(block.offset()));
        if (result < 0) result = -errno;
      } while (block.advance(result) == Block::Step::again);
    }
  }

  bool take(Block* block) {
    std::unique_lock<std::mutex> lock(mutex_);
    work_or_end_.wait(lock, [&] { return ending_ || !queue_.empty(); });
    if (queue_.empty()) return false;
    *block = std::move(queue_.front());
    queue_.pop_front();
    return true;
  }

  std::mutex mutex_;
  std::condition_variable work_or_end_;
  std::deque<Block> queue_;
  bool ending_ = false;
  std::vector<pthread_t> threads_;
};

}  // namespace

std::unique_ptr<Backend> start_threads(uint32_t depth, Refusal* refusal) {
  auto backend = std::make_unique<PreadBackend>();
  if (const int error = backend->start(depth)) {
    *refusal = {"pthread_create", error};
    return nullptr;
  }
  return backend;
}

}  // namespace k3::uring
