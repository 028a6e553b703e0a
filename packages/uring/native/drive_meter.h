// How much each drive has delivered, and how long it had something to do. Safe from any thread.
#pragma once
#include <chrono>
#include <mutex>
#include <vector>

namespace k3::uring {

struct DriveUse {
  uint64_t bytes = 0;
  double busy_seconds = 0;
};

class DriveMeter {
 public:
  explicit DriveMeter(uint32_t drives) : drives_(drives) {}

  void starts(uint32_t drive) {
    const std::lock_guard<std::mutex> lock(mutex_);
    State& state = drives_[drive];
    if (state.in_flight++ == 0) state.since = Clock::now();
  }

  void ends(uint32_t drive, int64_t result) {
    const std::lock_guard<std::mutex> lock(mutex_);
    State& state = drives_[drive];
    if (result > 0) state.use.bytes += static_cast<uint64_t>(result);
    if (--state.in_flight == 0) state.use.busy_seconds += seconds(Clock::now() - state.since);
  }

  std::vector<DriveUse> use() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<DriveUse> all;
    for (const State& state : drives_) {
      all.push_back(state.use);
      if (state.in_flight) all.back().busy_seconds += seconds(Clock::now() - state.since);
    }
    return all;
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct State {
    DriveUse use;
    uint32_t in_flight = 0;
    Clock::time_point since;
  };
  static double seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

  mutable std::mutex mutex_;
  std::vector<State> drives_;
};

}  // namespace k3::uring
