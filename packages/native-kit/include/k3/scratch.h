// Memory an op works in, aligned to cache lines. It only grows, and what it holds after growing is undefined.
#pragma once
#include <stdint.h>
#include <stdlib.h>

namespace k3 {

class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { free(data_); }

  // At least `floats` numbers; null when the system has no such memory.
  float* reserve(uint64_t floats) {
    if (floats <= floats_) return data_;
    free(data_);
    void* data = nullptr;
    const bool ok = floats <= SIZE_MAX / 8 && posix_memalign(&data, 64, sizeof(float) * (size_t)floats) == 0;
    data_ = ok ? static_cast<float*>(data) : nullptr;
    floats_ = ok ? floats : 0;
    return data_;
  }
  float* data() const { return data_; }

 private:
  float* data_ = nullptr;
  uint64_t floats_ = 0;
};

}  // namespace k3
