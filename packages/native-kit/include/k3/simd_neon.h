// The 16 lanes as four 128-bit registers (AArch64 Advanced SIMD).
#pragma once
#include <arm_neon.h>
#include "simd_base.h"
#define K3_ISA neon
// rows x columns of accumulators that fit the register file beside the operands
static constexpr int kTileRows = 2, kTileColumns = 2;
static constexpr int kPartLanes = 4, kPartRows = 4, kPartColumns = 6;
static constexpr size_t kFetchAhead = 0;

struct f32x16 { float32x4_t v[4]; };
struct u32x16 { uint32x4_t v[4]; };
struct mask16 { uint32x4_t v[4]; };

#define K3_EACH(expr)                         \
  for (int q = 0; q < 4; ++q) r.v[q] = expr;  \
  return r

K3_INLINE f32x16 load(const float* p) { f32x16 r; K3_EACH(vld1q_f32(p + 4 * q)); }
K3_INLINE f32x16 load_n(const float* p, int n) {
  float lanes[16] = {0};
  memcpy(lanes, p, 4 * (size_t)n);
  return load(lanes);
}
K3_INLINE void store(float* p, f32x16 a) { for (int q = 0; q < 4; ++q) vst1q_f32(p + 4 * q, a.v[q]); }
K3_INLINE void store_n(float* p, f32x16 a, int n) {
  float lanes[16];
  store(lanes, a);
  memcpy(p, lanes, 4 * (size_t)n);
}
K3_INLINE f32x16 splat(float x) { f32x16 r; K3_EACH(vdupq_n_f32(x)); }
K3_INLINE f32x16 zero() { return splat(0.0f); }

K3_INLINE f32x16 add(f32x16 a, f32x16 b) { f32x16 r; K3_EACH(vaddq_f32(a.v[q], b.v[q])); }
K3_INLINE f32x16 sub(f32x16 a, f32x16 b) { f32x16 r; K3_EACH(vsubq_f32(a.v[q], b.v[q])); }
K3_INLINE f32x16 mul(f32x16 a, f32x16 b) { f32x16 r; K3_EACH(vmulq_f32(a.v[q], b.v[q])); }
K3_INLINE f32x16 div(f32x16 a, f32x16 b) { f32x16 r; K3_EACH(vdivq_f32(a.v[q], b.v[q])); }
K3_INLINE f32x16 fma(f32x16 a, f32x16 b, f32x16 c) { f32x16 r; K3_EACH(vfmaq_f32(c.v[q], a.v[q], b.v[q])); }

struct f32part { float32x4_t v; };
K3_INLINE f32part load_part(const float* p) { return {vld1q_f32(p)}; }
K3_INLINE f32part splat_part(float x) { return {vdupq_n_f32(x)}; }
K3_INLINE void store(float* p, f32part a) { vst1q_f32(p, a.v); }
K3_INLINE f32part mul(f32part a, f32part b) { return {vmulq_f32(a.v, b.v)}; }
K3_INLINE f32part fma(f32part a, f32part b, f32part c) { return {vfmaq_f32(c.v, a.v, b.v)}; }

K3_INLINE f32x16 sqrt(f32x16 a) { f32x16 r; K3_EACH(vsqrtq_f32(a.v[q])); }
K3_INLINE f32x16 abs(f32x16 a) { f32x16 r; K3_EACH(vabsq_f32(a.v[q])); }
K3_INLINE f32x16 copysign(f32x16 magnitude, f32x16 sign) {
  f32x16 r;
  K3_EACH(vbslq_f32(vdupq_n_u32(0x80000000u), sign.v[q], magnitude.v[q]));
}

K3_INLINE mask16 less(f32x16 a, f32x16 b) { mask16 r; K3_EACH(vcltq_f32(a.v[q], b.v[q])); }
K3_INLINE f32x16 select(mask16 m, f32x16 a, f32x16 b) { f32x16 r; K3_EACH(vbslq_f32(m.v[q], a.v[q], b.v[q])); }
K3_INLINE f32x16 at_least(f32x16 a, f32x16 low) { return select(less(a, low), low, a); }
K3_INLINE f32x16 at_most(f32x16 a, f32x16 high) { return select(less(high, a), high, a); }

K3_INLINE float sum(f32x16 a) {
  const float32x4_t four = vaddq_f32(vaddq_f32(a.v[0], a.v[2]), vaddq_f32(a.v[1], a.v[3]));
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
K3_INLINE void store_sums(float* p, const f32x16* a, float factor) {
  for (int i = 0; i < 4; ++i) p[i] = sum(a[i]) * factor;
}
K3_INLINE float highest(f32x16 a) {
  return vmaxvq_f32(vmaxq_f32(vmaxq_f32(a.v[0], a.v[2]), vmaxq_f32(a.v[1], a.v[3])));
}

K3_INLINE f32x16 load_bf16(const void* p) {
  const uint8_t* h = (const uint8_t*)p;
  f32x16 r;
  K3_EACH(vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(vld1_u8(h + 8 * q)), 16)));
}
K3_INLINE f32part load_bf16_part(const void* p) {
  return {vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(vld1_u8((const uint8_t*)p)), 16))};
}
K3_INLINE f32x16 load_bf16_n(const void* p, int n) {
  uint16_t h[16] = {0};
  memcpy(h, p, 2 * (size_t)n);
  return load_bf16(h);
}

K3_INLINE u32x16 load_u32(const void* p) {
  const uint8_t* w = (const uint8_t*)p;
  u32x16 r;
  K3_EACH(vreinterpretq_u32_u8(vld1q_u8(w + 16 * q)));
}
K3_INLINE u32x16 load_u32_n(const void* p, int n) {
  uint32_t w[16] = {0};
  memcpy(w, p, 4 * (size_t)n);
  return load_u32(w);
}
K3_INLINE u32x16 splat_u32(uint32_t x) { u32x16 r; K3_EACH(vdupq_n_u32(x)); }
K3_INLINE u32x16 bits(f32x16 a) { u32x16 r; K3_EACH(vreinterpretq_u32_f32(a.v[q])); }
K3_INLINE f32x16 as_float(u32x16 a) { f32x16 r; K3_EACH(vreinterpretq_f32_u32(a.v[q])); }
K3_INLINE u32x16 add_u32(u32x16 a, u32x16 b) { u32x16 r; K3_EACH(vaddq_u32(a.v[q], b.v[q])); }
K3_INLINE u32x16 sub_u32(u32x16 a, u32x16 b) { u32x16 r; K3_EACH(vsubq_u32(a.v[q], b.v[q])); }
K3_INLINE u32x16 shl(u32x16 a, int n) { u32x16 r; K3_EACH(vshlq_u32(a.v[q], vdupq_n_s32(n))); }
K3_INLINE u32x16 shr(u32x16 a, int n) { u32x16 r; K3_EACH(vshlq_u32(a.v[q], vdupq_n_s32(-n))); }
K3_INLINE u32x16 shr_signed(u32x16 a, int n) {
  u32x16 r;
  K3_EACH(vreinterpretq_u32_s32(vshlq_s32(vreinterpretq_s32_u32(a.v[q]), vdupq_n_s32(-n))));
}

// Codes 2k and 2k+1 of a lane are the nibbles of its byte k. An E2M1 value needs only the upper half of a binary32, whose
// two bytes are looked up for all nibbles at once; one dword then holds two values, and code n is a shift or a mask.
// `order` puts the bytes so that the interleave leaves each lane's values in its own dword.
struct e2m1x8 { uint8x16_t even[4][2], odd[4][2]; };  // codes (0, 2), (4, 6) and (1, 3), (5, 7), lower half first
K3_INLINE e2m1x8 unpack_e2m1(u32x16 words) {
  static const uint8_t order[16] = {0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15};
  static const uint8_t byte3[16] = {0, 0x3f, 0x3f, 0x3f, 0x40, 0x40, 0x40, 0x40, 0x80, 0xbf, 0xbf, 0xbf, 0xc0, 0xc0, 0xc0, 0xc0};
  static const uint8_t byte2[16] = {0, 0x00, 0x80, 0xc0, 0x00, 0x40, 0x80, 0xc0, 0x00, 0x00, 0x80, 0xc0, 0x00, 0x40, 0x80, 0xc0};
  const uint8x16_t upper = vld1q_u8(byte3), lower = vld1q_u8(byte2), nibble = vdupq_n_u8(15);
  e2m1x8 r;
  for (int q = 0; q < 4; ++q) {
    const uint8x16_t bytes = vqtbl1q_u8(vreinterpretq_u8_u32(words.v[q]), vld1q_u8(order));
    const uint8x16_t even = vandq_u8(bytes, nibble), odd = vshrq_n_u8(bytes, 4);
    const uint8x16_t even3 = vqtbl1q_u8(upper, even), even2 = vqtbl1q_u8(lower, even);
    const uint8x16_t odd3 = vqtbl1q_u8(upper, odd), odd2 = vqtbl1q_u8(lower, odd);
    r.even[q][0] = vzip1q_u8(even2, even3), r.even[q][1] = vzip2q_u8(even2, even3);
    r.odd[q][0] = vzip1q_u8(odd2, odd3), r.odd[q][1] = vzip2q_u8(odd2, odd3);
  }
  return r;
}
K3_INLINE e2m1x8 unpack_e2m1_at(const uint8_t* p) { return unpack_e2m1(load_u32(p)); }
K3_INLINE f32x16 e2m1(const e2m1x8& codes, int n) {
  f32x16 r;
  for (int q = 0; q < 4; ++q) {
    const uint32x4_t two = vreinterpretq_u32_u8(n & 1 ? codes.odd[q][n / 4] : codes.even[q][n / 4]);
    r.v[q] = vreinterpretq_f32_u32(n & 2 ? vandq_u32(two, vdupq_n_u32(0xffff0000u)) : vshlq_n_u32(two, 16));
  }
  return r;
}

// scale bytes to 2^(s-127): the exponent field, except that byte 0 is the subnormal 0x00400000
K3_INLINE f32x16 e8m0_n(const uint8_t* scales, int groups) {
  f32x16 r;
  for (int q = 0; q < 4; ++q) {
    const uint32_t field = q < groups ? (uint32_t)scales[q] << 23 : 0;
    r.v[q] = vreinterpretq_f32_u32(vdupq_n_u32(field ? field : 0x00400000u));
  }
  return r;
}
K3_INLINE f32x16 e8m0x4(const uint8_t* scales) { return e8m0_n(scales, 4); }

// bytes 12 + 2 value of the even or odd codes of every byte
K3_INLINE u32x16 e2m1_bytes(u32x16 words, int odd) {
  static const uint8_t table[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
  const uint8x16_t values = vld1q_u8(table);
  u32x16 r;
  for (int q = 0; q < 4; ++q) {
    const uint8x16_t bytes = vreinterpretq_u8_u32(words.v[q]);
    const uint8x16_t codes = odd ? vshrq_n_u8(bytes, 4) : vandq_u8(bytes, vdupq_n_u8(15));
    r.v[q] = vreinterpretq_u32_u8(vqtbl1q_u8(values, codes));
  }
  return r;
}
K3_INLINE u32x16 dot_bytes(u32x16 start, u32x16 a, u32x16 b, u32x16 c, u32x16 d) {
  u32x16 r;
  for (int q = 0; q < 4; ++q) {
    const int8x16_t as = vreinterpretq_s8_u32(a.v[q]), bs = vreinterpretq_s8_u32(b.v[q]);
    const int8x16_t cs = vreinterpretq_s8_u32(c.v[q]), ds = vreinterpretq_s8_u32(d.v[q]);
    const int16x8_t low = vmlal_s8(vmull_s8(vget_low_s8(as), vget_low_s8(bs)), vget_low_s8(cs), vget_low_s8(ds));
    const int16x8_t high = vmlal_high_s8(vmull_high_s8(as, bs), cs, ds);
    const int32x4_t sums = vpaddq_s32(vpaddlq_s16(low), vpaddlq_s16(high));
    r.v[q] = vaddq_u32(start.v[q], vreinterpretq_u32_s32(sums));
  }
  return r;
}
K3_INLINE f32x16 to_float(u32x16 a) { f32x16 r; K3_EACH(vcvtq_f32_s32(vreinterpretq_s32_u32(a.v[q]))); }
#undef K3_EACH
