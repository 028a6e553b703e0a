#include "pool.h"

#include <k3/thread.h>

namespace k3::task_pool {
namespace {

constexpr ThreadSpec kThread = {"k3-task-pool", 8 << 20};  // the stack glibc would give; musl's 128 KiB is too small

// The pools this thread is running a part of, innermost first.
struct Frame {
  const Pool* pool;
  const Frame* outer;
};
thread_local const Frame* innermost = nullptr;

class Inside {
 public:
  explicit Inside(const Pool* pool) : frame_{pool, innermost} { innermost = &frame_; }
  ~Inside() { innermost = frame_.outer; }
  static bool of(const Pool* pool) {
    for (const Frame* f = innermost; f; f = f->outer)
      if (f->pool == pool) return true;
    return false;
  }

 private:
  Frame frame_;
};

}  // namespace

Pool::Pool(uint32_t count, std::chrono::nanoseconds spin) : spin_(spin) {
  abi = K3_ABI_VERSION;
  threads = count;
  run = run_parts;
  retain = [](K3Pool* pool) { static_cast<Pool*>(pool)->references_.fetch_add(1, std::memory_order_relaxed); };
  release = [](K3Pool* pool) {
    Pool* self = static_cast<Pool*>(pool);
    if (self->references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete self;
  };
}

Pool* Pool::create(uint32_t threads, std::chrono::nanoseconds spin, int* error) {
  Pool* pool = new Pool(threads, spin);
  *error = pool->start_workers();
  if (*error == 0) return pool;
  pool->release(pool);
  return nullptr;
}

int Pool::start_workers() {
  workers_.reserve(threads);  // a worker keeps the address of its element
  for (uint32_t part = 1; part < threads; ++part) {
    workers_.push_back({this, part, {}});
    if (const int error = start_thread(&workers_.back().thread, kThread, worker_main, &workers_.back())) {
      workers_.pop_back();
      return error;
    }
  }
  return 0;
}

void* Pool::worker_main(void* argument) {
  const Worker* worker = static_cast<Worker*>(argument);
  worker->pool->work(worker->part);
  return nullptr;
}

void Pool::work(uint32_t part) {
  const Inside inside(this);
  for (uint32_t round = 0;;) {
    round = round_.wait_while(round, spin_);
    if (ending_.load(std::memory_order_relaxed)) return;
    task_(context_, part, threads);
    if (pending_.add(-1u) == 0) pending_.wake_all();
  }
}

void Pool::fork_join(K3Task task, void* context) {
  task_ = task;
  context_ = context;
  pending_.set(threads - 1);
  round_.add(1);
  round_.wake_all();
  task(context, 0, threads);
  for (uint32_t left = pending_.load(); left != 0;) left = pending_.wait_while(left, spin_);
}

int Pool::run_parts(K3Pool* pool, K3Task task, void* context) {
  Pool* self = static_cast<Pool*>(pool);
  // A task that uses its own pool would wait for itself: its inner run is one part, on this thread.
  if (Inside::of(self)) {
    task(context, 0, 1);
    return 0;
  }
  const std::lock_guard<std::mutex> lock(self->turn_);
  if (self->closed_) return 1;
  const Inside inside(self);
  self->fork_join(task, context);
  return 0;
}

void Pool::close() {
  const std::lock_guard<std::mutex> lock(turn_);
  if (closed_) return;
  closed_ = true;
  ending_.store(true, std::memory_order_relaxed);
  round_.add(1);
  round_.wake_all();
  for (const Worker& worker : workers_) pthread_join(worker.thread, nullptr);
  __atomic_store_n(&threads, 0, __ATOMIC_RELAXED);  // for ops that would not need the others: they fail all the same
}

}  // namespace k3::task_pool
