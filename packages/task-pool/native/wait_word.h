// A 32-bit word to wait on: the waiter spins for a bounded time, then sleeps in the kernel until somebody wakes it.
#pragma once
#include <stdint.h>

#include <atomic>
#include <chrono>
#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#else
#include <condition_variable>
#include <mutex>
#endif

namespace k3::task_pool {

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb");
#endif
}

class WaitWord {
 public:
  uint32_t load() const { return word_.load(std::memory_order_acquire); }

  // Before anybody waits, or while all who may wait are known to wait for another value.
  void set(uint32_t value) { word_.store(value, std::memory_order_relaxed); }

  uint32_t add(uint32_t delta) { return word_.fetch_add(delta, std::memory_order_seq_cst) + delta; }

  // Publishes an earlier add(): a waiter either sees the new word or has counted itself as asleep.
  void wake_all() {
    if (sleepers_.load(std::memory_order_seq_cst)) unpark();
  }

  // Returns the first value that is not `old`.
  uint32_t wait_while(uint32_t old, std::chrono::nanoseconds spin) {
    if (spin.count() > 0) {
      const auto deadline = std::chrono::steady_clock::now() + spin;
      do {
        for (int i = 0; i < kPausesPerClockRead; ++i) {
          const uint32_t now = load();
          if (now != old) return now;
          pause();
        }
      } while (std::chrono::steady_clock::now() < deadline);
    }
    for (;;) {
      const uint32_t now = load();
      if (now != old) return now;
      sleepers_.fetch_add(1, std::memory_order_seq_cst);
      park(old);
      sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    }
  }

 private:
  static constexpr int kPausesPerClockRead = 16;

#if defined(__linux__)
  static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t), "the kernel reads the word itself");
  void park(uint32_t old) { syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, old, nullptr, nullptr, 0); }
  void unpark() { syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0); }
#else
  void park(uint32_t old) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return load() != old; });
  }
  void unpark() {
    { std::lock_guard<std::mutex> lock(mutex_); }
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
#endif

  std::atomic<uint32_t> word_{0};
  std::atomic<uint32_t> sleepers_{0};
};

}  // namespace k3::task_pool
