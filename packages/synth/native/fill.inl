// Word i of a tensor is a 32-bit mix of i and the tensor's key; a rule turns words into bytes. Plain loops over whole
// blocks, which the compiler turns into vector code: integer arithmetic, an exact int-to-float conversion and an exact
// multiplication by a power of two leave nothing that could differ between instruction sets.
// Passes: one over the output, everything else in a block that stays in the first-level cache.
#include "fill.h"

namespace {
using k3::synth::Stream;

constexpr size_t kBlockWords = 1024;

K3_INLINE void mix_words(const Stream& s, uint32_t first, uint32_t* words) {
  const uint32_t k0 = s.k0 + first, k1 = s.k1;
  for (uint32_t i = 0; i < kBlockWords; ++i) {
    uint32_t x = i + k0;
    x ^= x >> 16;
    x *= 0x85EBCA6Bu;
    x ^= x >> 13;
    x += k1;
    x *= 0xC2B2AE35u;
    words[i] = x ^ x >> 16;
  }
}

K3_INLINE void to_scales(const Stream& s, uint32_t* words) {
  uint8_t bytes[4 * kBlockWords];
  memcpy(bytes, words, sizeof bytes);
  const uint8_t low = (uint8_t)s.offset;
  for (size_t i = 0; i < sizeof bytes; ++i) bytes[i] = (uint8_t)(low + (uint8_t)((uint16_t)(5 * bytes[i]) >> 8));
  memcpy(words, bytes, sizeof bytes);
}

// the binary32 bits of (offset + slope * (2h - 65535)) * unit
K3_INLINE uint32_t affine(uint32_t h, int32_t base, int32_t step, float unit) {
  const float v = (float)(base + step * (int32_t)h) * unit;
  uint32_t u;
  memcpy(&u, &v, 4);
  return u;
}

K3_INLINE uint32_t round_to_bf16(uint32_t u) { return (u + 0x7FFFu + (u >> 16 & 1)) >> 16; }

K3_INLINE void to_bf16(const Stream& s, uint32_t* words) {
  const int32_t base = s.offset - 65535 * s.slope, step = 2 * s.slope;
  const float unit = s.unit;
  for (size_t i = 0; i < kBlockWords; ++i) {
    const uint32_t low = round_to_bf16(affine(words[i] & 0xFFFFu, base, step, unit));
    const uint32_t high = round_to_bf16(affine(words[i] >> 16, base, step, unit));
    words[i] = low | high << 16;
  }
}

K3_INLINE void to_f32(const Stream& s, uint64_t first, uint32_t* words) {
  const int32_t base = s.offset - 65535 * s.slope, step = 2 * s.slope;
  const float unit = s.unit;
  for (size_t i = 0; i < kBlockWords; ++i) words[i] = affine(words[i] >> 16, base, step, unit);
  for (size_t i = first < s.live ? s.live - first : 0; i < kBlockWords; ++i) words[i] = 0;
}

void fill(const Stream& s, uint64_t first_word, uint8_t* out, size_t bytes) {
  uint32_t words[kBlockWords];
  for (size_t done = 0; done < bytes; done += sizeof words) {
    const uint64_t first = first_word + done / 4;
    mix_words(s, (uint32_t)first, words);
    switch (s.kind) {
      case k3::synth::kScale: to_scales(s, words); break;
      case k3::synth::kAffineBf16: to_bf16(s, words); break;
      case k3::synth::kAffineF32: to_f32(s, first, words); break;
      case k3::synth::kRaw: break;
    }
    const size_t rest = bytes - done;
    memcpy(out + done, words, rest < sizeof words ? rest : sizeof words);
  }
}
}  // namespace

namespace k3::synth {
const Kernels K3_KERNELS = {fill};
}
