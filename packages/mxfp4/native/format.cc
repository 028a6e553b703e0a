#include "format.h"

#include <string.h>

namespace k3::mxfp4 {
namespace {
constexpr size_t kGroup = 32;

template <class To, class From>
To as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

uint32_t magnitude_bits(float v) { return as<uint32_t>(v) & 0x7fffffffu; }

// Nearest of 0, 0.5, 1, 1.5, 2, 3, 4, 6; ties go to the even code, everything beyond 5 to 6.
uint8_t nearest_code(double magnitude) {
  return (uint8_t)((magnitude > 0.25) + (magnitude >= 0.75) + (magnitude > 1.25) + (magnitude >= 1.75) +
                   (magnitude > 2.5) + (magnitude >= 3.5) + (magnitude > 5));
}
}  // namespace

void decode(const uint8_t* codes, const uint8_t* scales, size_t groups, float* out) {
  static constexpr float values[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                       -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};
  for (size_t g = 0; g < groups; ++g, codes += kGroup / 2, out += kGroup) {
    const float scale = as<float>(scales[g] ? (uint32_t)scales[g] << 23 : 0x00400000u);
    float scaled[16];
    for (int code = 0; code < 16; ++code) scaled[code] = values[code] * scale;
    for (size_t i = 0; i < kGroup / 2; ++i) {
      out[2 * i] = scaled[codes[i] & 15];
      out[2 * i + 1] = scaled[codes[i] >> 4];
    }
  }
}

int64_t encode(const float* values, size_t groups, uint8_t* codes, uint8_t* scales) {
  for (size_t g = 0; g < groups; ++g, values += kGroup, codes += kGroup / 2) {
    uint32_t largest = 0;
    for (size_t i = 0; i < kGroup; ++i) {
      const uint32_t bits = magnitude_bits(values[i]);
      if (bits >= 0x7f800000u) return (int64_t)(g * kGroup + i);
      if (bits > largest) largest = bits;
    }
    // the biased exponent of the largest magnitude, less 2 because the largest E2M1 exponent is 2
    const uint32_t exponent = largest >> 23;
    const uint8_t scale = (uint8_t)(exponent > 2 ? exponent - 2 : 0);
    const double inverse = as<double>((uint64_t)(1023 + 127 - scale) << 52);  // 2^(127 - scale), exact
    uint8_t pair[kGroup];
    for (size_t i = 0; i < kGroup; ++i) {
      const uint8_t sign = (uint8_t)(as<uint32_t>(values[i]) >> 31 << 3);
      pair[i] = sign | nearest_code(as<float>(magnitude_bits(values[i])) * inverse);
    }
    for (size_t i = 0; i < kGroup / 2; ++i) codes[i] = (uint8_t)(pair[2 * i] | pair[2 * i + 1] << 4);
    scales[g] = scale;
  }
  return -1;
}

}  // namespace k3::mxfp4
