// The 16 lanes as one 512-bit register (AVX-512 F, BW, DQ, VL). With K3_EMULATE_AVX512 the same intrinsics come from
// SIMDe, so that a machine without AVX-512 can check this file (scripts/emulate-avx512). A stamp that defines K3_VNNI needs
// AVX-512 VNNI too.
#pragma once
#ifdef K3_EMULATE_AVX512
#include "avx512_emulation.h"
#else
#include <immintrin.h>
#endif
#include "simd_base.h"
#define K3_ISA avx512
// rows x columns of accumulators that fit the register file beside the operands
static constexpr int kTileRows = 4, kTileColumns = 6;
static constexpr int kPartLanes = 16, kPartRows = 4, kPartColumns = 6;
static constexpr size_t kFetchAhead = 512;
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // gcc 12 warns inside its own intrinsics header
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

struct f32x16 { __m512 v; };
struct u32x16 { __m512i v; };
struct mask16 { __mmask16 v; };

K3_INLINE __mmask16 first_lanes(int n) { return (__mmask16)((1u << n) - 1u); }

K3_INLINE f32x16 load(const float* p) { return {_mm512_loadu_ps(p)}; }
K3_INLINE f32x16 load_n(const float* p, int n) { return {_mm512_maskz_loadu_ps(first_lanes(n), p)}; }
K3_INLINE void store(float* p, f32x16 a) { _mm512_storeu_ps(p, a.v); }
K3_INLINE void store_n(float* p, f32x16 a, int n) { _mm512_mask_storeu_ps(p, first_lanes(n), a.v); }
K3_INLINE f32x16 splat(float x) { return {_mm512_set1_ps(x)}; }
K3_INLINE f32x16 zero() { return {_mm512_setzero_ps()}; }
typedef f32x16 f32part;
K3_INLINE f32part load_part(const float* p) { return load(p); }
K3_INLINE f32part splat_part(float x) { return splat(x); }

K3_INLINE f32x16 add(f32x16 a, f32x16 b) { return {_mm512_add_ps(a.v, b.v)}; }
K3_INLINE f32x16 sub(f32x16 a, f32x16 b) { return {_mm512_sub_ps(a.v, b.v)}; }
K3_INLINE f32x16 mul(f32x16 a, f32x16 b) { return {_mm512_mul_ps(a.v, b.v)}; }
K3_INLINE f32x16 div(f32x16 a, f32x16 b) { return {_mm512_div_ps(a.v, b.v)}; }
K3_INLINE f32x16 fma(f32x16 a, f32x16 b, f32x16 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
K3_INLINE f32x16 sqrt(f32x16 a) { return {_mm512_sqrt_ps(a.v)}; }
K3_INLINE f32x16 abs(f32x16 a) { return {_mm512_andnot_ps(_mm512_set1_ps(-0.0f), a.v)}; }
K3_INLINE f32x16 copysign(f32x16 magnitude, f32x16 sign) {
  const __m512 bit = _mm512_set1_ps(-0.0f);
  return {_mm512_or_ps(_mm512_andnot_ps(bit, magnitude.v), _mm512_and_ps(bit, sign.v))};
}

K3_INLINE mask16 less(f32x16 a, f32x16 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
K3_INLINE f32x16 select(mask16 m, f32x16 a, f32x16 b) { return {_mm512_mask_blend_ps(m.v, b.v, a.v)}; }
// of a number and a NaN, these instructions take the second operand
K3_INLINE f32x16 at_least(f32x16 a, f32x16 low) { return {_mm512_max_ps(low.v, a.v)}; }
K3_INLINE f32x16 at_most(f32x16 a, f32x16 high) { return {_mm512_min_ps(high.v, a.v)}; }

K3_INLINE __m256 high_half(__m512 a) { return _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(a), 1)); }
K3_INLINE float sum(f32x16 a) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a.v), high_half(a.v));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
// sum of four at a time: a shuffle brings two numbers to be added together for each register, not one
K3_INLINE void store_sums(float* p, const f32x16* a, float factor) {
  const auto halves = [](f32x16 x, f32x16 y) {
    return _mm512_add_ps(_mm512_shuffle_f32x4(x.v, y.v, 0x44), _mm512_shuffle_f32x4(x.v, y.v, 0xee));
  };
  const __m512 eight01 = halves(a[0], a[1]), eight23 = halves(a[2], a[3]);
  const __m512 four = _mm512_add_ps(_mm512_shuffle_f32x4(eight01, eight23, 0x88), _mm512_shuffle_f32x4(eight01, eight23, 0xdd));
  const __m512 two = _mm512_add_ps(four, _mm512_shuffle_ps(four, four, 0x4e));
  const __m512 one = _mm512_mul_ps(_mm512_add_ps(two, _mm512_shuffle_ps(two, two, 0xb1)), _mm512_set1_ps(factor));
  const __m512i firsts = _mm512_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12);
  _mm_storeu_ps(p, _mm512_castps512_ps128(_mm512_permutexvar_ps(firsts, one)));
}
K3_INLINE float highest(f32x16 a) {
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(a.v), high_half(a.v));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

#ifdef K3_EMULATE_AVX512
K3_INLINE f32x16 widen_bf16(__m256i h) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16))};
}
#else
// each number to the upper half of its lane, zeros below: one shuffle where a conversion and a shift would be two
K3_INLINE f32x16 widen_bf16(__m256i h) {
  const __m512i places = _mm512_slli_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), 16);
  return {_mm512_castsi512_ps(_mm512_maskz_permutexvar_epi16(0xaaaaaaaau, places, _mm512_castsi256_si512(h)))};
}
#endif
K3_INLINE f32x16 load_bf16(const void* p) { return widen_bf16(_mm256_loadu_si256((const __m256i*)p)); }
K3_INLINE f32part load_bf16_part(const void* p) { return load_bf16(p); }
K3_INLINE f32x16 load_bf16_n(const void* p, int n) {
  uint16_t h[16] = {0};
  memcpy(h, p, 2 * (size_t)n);
  return load_bf16(h);
}

K3_INLINE u32x16 load_u32(const void* p) { return {_mm512_loadu_si512(p)}; }
K3_INLINE u32x16 load_u32_n(const void* p, int n) { return {_mm512_maskz_loadu_epi32(first_lanes(n), p)}; }
K3_INLINE u32x16 splat_u32(uint32_t x) { return {_mm512_set1_epi32((int)x)}; }
K3_INLINE u32x16 bits(f32x16 a) { return {_mm512_castps_si512(a.v)}; }
K3_INLINE f32x16 as_float(u32x16 a) { return {_mm512_castsi512_ps(a.v)}; }
K3_INLINE u32x16 add_u32(u32x16 a, u32x16 b) { return {_mm512_add_epi32(a.v, b.v)}; }
K3_INLINE u32x16 sub_u32(u32x16 a, u32x16 b) { return {_mm512_sub_epi32(a.v, b.v)}; }
K3_INLINE u32x16 shl(u32x16 a, int n) { return {_mm512_slli_epi32(a.v, (unsigned)n)}; }
K3_INLINE u32x16 shr(u32x16 a, int n) { return {_mm512_srli_epi32(a.v, (unsigned)n)}; }
K3_INLINE u32x16 shr_signed(u32x16 a, int n) { return {_mm512_srai_epi32(a.v, (unsigned)n)}; }

// The look-up of 16 floats reads the low 4 bits of a lane: code 2k of every lane is there in even[k], code 2k + 1 above it.
// (A look-up of 16-bit words would find two codes at once, but is two instructions inside an Intel core.)
struct e2m1x8 { __m512i even[4]; };
K3_INLINE e2m1x8 unpack_e2m1(u32x16 words) {
  e2m1x8 r;
  for (int k = 0; k < 4; ++k) r.even[k] = _mm512_srli_epi32(words.v, (unsigned)(8 * k));
  return r;
}
// loads in the place of shifts
K3_INLINE e2m1x8 unpack_e2m1_at(const uint8_t* p) {
  e2m1x8 r;
  for (int k = 0; k < 4; ++k) r.even[k] = _mm512_loadu_si512(p + k);
  return r;
}
K3_INLINE f32x16 e2m1(const e2m1x8& codes, int n) {
  const __m512 values = _mm512_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f,
                                       -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f);
  const __m512i even = codes.even[n / 2];
  return {_mm512_permutexvar_ps(n & 1 ? _mm512_srli_epi32(even, 4) : even, values)};
}

// scale bytes to 2^(s-127): the exponent field, except that byte 0 is the subnormal 0x00400000. The shuffle moves scale
// byte g to the top of the dwords of lanes 4g..4g+3, one bit too high.
K3_INLINE f32x16 e8m0_packed(uint32_t four) {
  const int g0 = 0x00ffffff, g1 = 0x01ffffff, g2 = 0x02ffffff, g3 = 0x03ffffff;
  const __m512i top = _mm512_setr_epi32(g0, g0, g0, g0, g1, g1, g1, g1, g2, g2, g2, g2, g3, g3, g3, g3);
  const __m512i scales = _mm512_srli_epi32(_mm512_shuffle_epi8(_mm512_set1_epi32((int)four), top), 1);
  return {_mm512_castsi512_ps(_mm512_max_epi32(scales, _mm512_set1_epi32(0x00400000)))};
}
K3_INLINE f32x16 e8m0x4(const uint8_t* scales) {
  uint32_t four;
  memcpy(&four, scales, 4);
  return e8m0_packed(four);
}
K3_INLINE f32x16 e8m0_n(const uint8_t* scales, int groups) {
  uint32_t four = 0;
  memcpy(&four, scales, (size_t)groups);
  return e8m0_packed(four);
}

// bytes 12 + 2 value of the even or odd codes of every byte
K3_INLINE u32x16 e2m1_bytes(u32x16 words, int odd) {
  const __m512i values = _mm512_broadcast_i32x4(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
  const __m512i codes = odd ? _mm512_srli_epi16(words.v, 4) : words.v;
  return {_mm512_shuffle_epi8(values, _mm512_and_si512(codes, _mm512_set1_epi8(15)))};
}
#ifdef K3_VNNI
K3_INLINE u32x16 dot_bytes(u32x16 start, u32x16 a, u32x16 b, u32x16 c, u32x16 d) {
  return {_mm512_dpbusd_epi32(_mm512_dpbusd_epi32(start.v, a.v, b.v), c.v, d.v)};
}
#else
K3_INLINE u32x16 dot_bytes(u32x16 start, u32x16 a, u32x16 b, u32x16 c, u32x16 d) {
  const __m512i pairs = _mm512_add_epi16(_mm512_maddubs_epi16(a.v, b.v), _mm512_maddubs_epi16(c.v, d.v));
  return {_mm512_add_epi32(start.v, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)))};
}
#endif
K3_INLINE f32x16 to_float(u32x16 a) { return {_mm512_cvtepi32_ps(a.v)}; }

#ifndef K3_EMULATE_AVX512
#define K3_SCALE
K3_INLINE f32x16 scale(f32x16 a, f32x16 n) { return {_mm512_scalef_ps(a.v, n.v)}; }
#endif
