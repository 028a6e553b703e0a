// The pool as an addon sees it: a counted reference, and `parallel` over it.
#pragma once
#include "abi.h"

namespace k3 {

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

  // parts of every `parallel`
  uint32_t threads() const { return pool_ ? pool_->threads : 1; }

  // task(part, parts) on every thread of the pool, or once with (0, 1) when there is none. False: the pool is closed
  // and nothing ran.
  template <class Task>
  bool parallel(Task&& task) const {
    if (!pool_) {
      task(0u, 1u);
      return true;
    }
    return pool_->run(pool_, [](void* t, uint32_t part, uint32_t parts) { (*static_cast<Task*>(t))(part, parts); }, &task) == 0;
  }

 private:
  K3Pool* pool_ = nullptr;
};

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
