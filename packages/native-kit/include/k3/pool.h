// The pool as an addon sees it: a counted reference, and `parallel` over it.
#pragma once
#include <atomic>
#include <type_traits>

#include "abi.h"

namespace k3 {

// Some 2 µs of one thread with data in second-level cache, four times what fork and join of two waiting threads cost
// (benchmarks/task-pool.mjs). Whether an op forks depends on its sizes alone, and its bits on neither.
constexpr uint64_t kForkWork = 65536, kTranscendental = 16;

class PoolRef {
 public:
  PoolRef() = default;
  explicit PoolRef(K3Pool* pool) : pool_(pool) {
    if (pool_) pool_->retain(pool_);
  }
  PoolRef(PoolRef&& other) noexcept : pool_(other.pool_) { other.pool_ = nullptr; }
  PoolRef& operator=(PoolRef&& other) noexcept {
    K3Pool* mine = pool_;
    pool_ = other.pool_;
    other.pool_ = mine;
    return *this;
  }
  PoolRef(const PoolRef&) = delete;
  PoolRef& operator=(const PoolRef&) = delete;
  ~PoolRef() {
    if (pool_) pool_->release(pool_);
  }

  // parts of a `parallel` at most; 0 when the pool is closed
  uint32_t threads() const { return pool_ ? __atomic_load_n(&pool_->threads, __ATOMIC_RELAXED) : 1; }

  // task(part, parts) on every thread of the pool, or once with (0, 1) when there is none. False: the pool is closed
  // and nothing ran.
  template <class Task>
  bool parallel(Task&& task) const {
    return parallel(kForkWork, task);
  }

  // The same, but on this thread alone when `work` is less than a fork is worth: multiply-adds, about, a transcendental
  // counting kTranscendental of them.
  template <class Task>
  bool parallel(uint64_t work, Task&& task) const {
    if (threads() == 0) return false;
    if (!pool_ || work < kForkWork) {
      task(0u, 1u);
      return true;
    }
    using Body = std::remove_reference_t<Task>;
    const auto call = [](void* t, uint32_t part, uint32_t parts) { (*static_cast<Body*>(t))(part, parts); };
    return pool_->run(pool_, call, &task) == 0;
  }

  // body(i) for every i below `count`. Threads take the next i one by one: one that is slowed down takes fewer, and all
  // of them stream through one stretch of memory. Which thread takes an i changes none of its bits.
  template <class Body>
  bool each(uint64_t work, size_t count, Body&& body) const {
    std::atomic<size_t> next{0};
    return parallel(work, [&](uint32_t, uint32_t) {
      for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;) body(i);
    });
  }

 private:
  K3Pool* pool_ = nullptr;
};

// How many rows a thread takes at once, of `items` matrices with `rows` rows each: 256, or so few that there are 8 blocks
// for each thread, but no fewer than `least`, which is 256 halved any number of times.
inline size_t block_rows(size_t items, size_t rows, size_t least, uint32_t threads) {
  size_t step = 256;
  while (step > least && items * ((rows + step - 1) / step) < 8 * (size_t)threads) step /= 2;
  return step;
}

// Part `part` of `count` items, split evenly in multiples of `step` (the last part may be ragged).
struct Range {
  size_t begin, end;
};
inline Range share(size_t count, size_t step, uint32_t part, uint32_t parts) {
  const size_t steps = (count + step - 1) / step;
  const size_t begin = steps * part / parts * step, end = steps * (part + 1) / parts * step;
  return {begin < count ? begin : count, end < count ? end : count};
}

}  // namespace k3
