// Memory an op keeps between calls, aligned to cache lines. It only grows.
#pragma once
#include <stdint.h>
#include <stdlib.h>

namespace k3::mxfp4 {

class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { free(data_); }

  // At least `bytes` bytes of whatever was there; null when the system has no such memory.
  uint8_t* reserve(uint64_t bytes) {
    if (bytes <= bytes_) return data_;
    free(data_);
    void* data = nullptr;
    const bool ok = bytes <= SIZE_MAX / 2 && posix_memalign(&data, 64, (size_t)bytes) == 0;
    data_ = ok ? static_cast<uint8_t*>(data) : nullptr;
    bytes_ = ok ? bytes : 0;
    return data_;
  }

 private:
  uint8_t* data_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace k3::mxfp4
