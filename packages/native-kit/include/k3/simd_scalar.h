// The 16 lanes as an array: the meaning of every function, and the fallback on any machine.
#pragma once
#include "simd_base.h"
#define K3_ISA scalar
// rows x columns of accumulators that fit the register file beside the operands
static constexpr int kTileRows = 1, kTileColumns = 1;
static constexpr int kPartLanes = 16, kPartRows = 1, kPartColumns = 1;
static constexpr size_t kFetchAhead = 0;

struct f32x16 { float v[16]; };
struct u32x16 { uint32_t v[16]; };
struct mask16 { bool v[16]; };

#define K3_EACH(expr)                          \
  for (int j = 0; j < 16; ++j) r.v[j] = expr;  \
  return r

K3_INLINE f32x16 load(const float* p) { f32x16 r; memcpy(r.v, p, sizeof r.v); return r; }
K3_INLINE f32x16 load_n(const float* p, int n) { f32x16 r; K3_EACH(j < n ? p[j] : 0.0f); }
K3_INLINE void store(float* p, f32x16 a) { memcpy(p, a.v, sizeof a.v); }
K3_INLINE void store_n(float* p, f32x16 a, int n) { memcpy(p, a.v, 4 * (size_t)n); }
K3_INLINE f32x16 splat(float x) { f32x16 r; K3_EACH(x); }
K3_INLINE f32x16 zero() { return splat(0.0f); }
typedef f32x16 f32part;
K3_INLINE f32part load_part(const float* p) { return load(p); }
K3_INLINE f32part splat_part(float x) { return splat(x); }

K3_INLINE f32x16 add(f32x16 a, f32x16 b) { f32x16 r; K3_EACH(a.v[j] + b.v[j]); }
K3_INLINE f32x16 sub(f32x16 a, f32x16 b) { f32x16 r; K3_EACH(a.v[j] - b.v[j]); }
K3_INLINE f32x16 mul(f32x16 a, f32x16 b) { f32x16 r; K3_EACH(a.v[j] * b.v[j]); }
K3_INLINE f32x16 div(f32x16 a, f32x16 b) { f32x16 r; K3_EACH(a.v[j] / b.v[j]); }
K3_INLINE f32x16 fma(f32x16 a, f32x16 b, f32x16 c) { f32x16 r; K3_EACH(__builtin_fmaf(a.v[j], b.v[j], c.v[j])); }
K3_INLINE f32x16 sqrt(f32x16 a) { f32x16 r; K3_EACH(__builtin_sqrtf(a.v[j])); }
K3_INLINE f32x16 abs(f32x16 a) { f32x16 r; K3_EACH(__builtin_fabsf(a.v[j])); }
K3_INLINE f32x16 copysign(f32x16 magnitude, f32x16 sign) { f32x16 r; K3_EACH(__builtin_copysignf(magnitude.v[j], sign.v[j])); }

K3_INLINE mask16 less(f32x16 a, f32x16 b) { mask16 r; K3_EACH(a.v[j] < b.v[j]); }
K3_INLINE f32x16 select(mask16 m, f32x16 a, f32x16 b) { f32x16 r; K3_EACH(m.v[j] ? a.v[j] : b.v[j]); }
K3_INLINE f32x16 at_least(f32x16 a, f32x16 low) { return select(less(a, low), low, a); }
K3_INLINE f32x16 at_most(f32x16 a, f32x16 high) { return select(less(high, a), high, a); }

K3_INLINE float sum(f32x16 a) {
  for (int width = 8; width > 0; width /= 2)
    for (int j = 0; j < width; ++j) a.v[j] += a.v[j + width];
  return a.v[0];
}
K3_INLINE void store_sums(float* p, const f32x16* a, float factor) {
  for (int i = 0; i < 4; ++i) p[i] = sum(a[i]) * factor;
}
K3_INLINE float highest(f32x16 a) {
  float m = a.v[0];
  for (int j = 1; j < 16; ++j) m = m < a.v[j] ? a.v[j] : m;
  return m;
}

K3_INLINE f32x16 load_bf16(const void* p) {
  uint16_t h[16];
  memcpy(h, p, sizeof h);
  f32x16 r;
  K3_EACH(bf16_to_f32(h[j]));
}
K3_INLINE f32part load_bf16_part(const void* p) { return load_bf16(p); }
K3_INLINE f32x16 load_bf16_n(const void* p, int n) {
  uint16_t h[16] = {0};
  memcpy(h, p, 2 * (size_t)n);
  return load_bf16(h);
}

K3_INLINE u32x16 load_u32(const void* p) { u32x16 r; memcpy(r.v, p, sizeof r.v); return r; }
K3_INLINE u32x16 load_u32_n(const void* p, int n) { u32x16 r = {{0}}; memcpy(r.v, p, 4 * (size_t)n); return r; }
K3_INLINE u32x16 splat_u32(uint32_t x) { u32x16 r; K3_EACH(x); }
K3_INLINE u32x16 bits(f32x16 a) { u32x16 r; memcpy(r.v, a.v, sizeof r.v); return r; }
K3_INLINE f32x16 as_float(u32x16 a) { f32x16 r; memcpy(r.v, a.v, sizeof r.v); return r; }
K3_INLINE u32x16 add_u32(u32x16 a, u32x16 b) { u32x16 r; K3_EACH(a.v[j] + b.v[j]); }
K3_INLINE u32x16 sub_u32(u32x16 a, u32x16 b) { u32x16 r; K3_EACH(a.v[j] - b.v[j]); }
K3_INLINE u32x16 shl(u32x16 a, int n) { u32x16 r; K3_EACH(a.v[j] << n); }
K3_INLINE u32x16 shr(u32x16 a, int n) { u32x16 r; K3_EACH(a.v[j] >> n); }
K3_INLINE u32x16 shr_signed(u32x16 a, int n) { u32x16 r; K3_EACH((uint32_t)((int32_t)a.v[j] >> n)); }

typedef u32x16 e2m1x8;  // the packed words themselves
K3_INLINE e2m1x8 unpack_e2m1(u32x16 words) { return words; }
K3_INLINE e2m1x8 unpack_e2m1_at(const uint8_t* p) { return unpack_e2m1(load_u32(p)); }
K3_INLINE f32x16 e2m1(e2m1x8 words, int n) {
  static const float values[16] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f,
                                   -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};
  f32x16 r;
  K3_EACH(values[words.v[j] >> (4 * n) & 15]);
}
// 2^(s-127); byte 0 is the subnormal 2^-127, byte 255 (NaN) was refused before a kernel sees it
K3_INLINE f32x16 e8m0_n(const uint8_t* scales, int groups) {
  u32x16 r = splat_u32(0x00400000u);
  for (int j = 0; j < 4 * groups; ++j)
    if (scales[j / 4] != 0) r.v[j] = (uint32_t)scales[j / 4] << 23;
  return as_float(r);
}
K3_INLINE f32x16 e8m0x4(const uint8_t* scales) { return e8m0_n(scales, 4); }

K3_INLINE u32x16 e2m1_bytes(u32x16 words, int odd) {
  static const uint8_t values[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
  uint8_t bytes[64];
  memcpy(bytes, words.v, sizeof bytes);
  for (int i = 0; i < 64; ++i) bytes[i] = values[odd ? bytes[i] >> 4 : bytes[i] & 15];
  return load_u32(bytes);
}
K3_INLINE u32x16 dot_bytes(u32x16 start, u32x16 a, u32x16 b, u32x16 c, u32x16 d) {
  uint8_t u[2][64];
  int8_t s[2][64];
  memcpy(u[0], a.v, 64), memcpy(u[1], c.v, 64);
  memcpy(s[0], b.v, 64), memcpy(s[1], d.v, 64);
  for (int i = 0; i < 64; ++i) start.v[i / 4] += (uint32_t)(u[0][i] * s[0][i] + u[1][i] * s[1][i]);
  return start;
}
K3_INLINE f32x16 to_float(u32x16 a) { f32x16 r; K3_EACH((float)(int32_t)a.v[j]); }
#undef K3_EACH
