// The 16 lanes as two 256-bit registers (AVX2 + FMA): `lo` holds lanes 0..7, `hi` lanes 8..15.
#pragma once
#include <immintrin.h>
#include "simd_base.h"
#define K3_ISA avx2
// rows x columns of accumulators that fit the register file beside the operands
static constexpr int kTileRows = 2, kTileColumns = 2;
static constexpr int kPartLanes = 8, kPartRows = 4, kPartColumns = 3;
static constexpr size_t kFetchAhead = 0;

struct f32x16 { __m256 lo, hi; };
struct u32x16 { __m256i lo, hi; };
struct mask16 { __m256 lo, hi; };

// the first n of 8 lanes, n may be negative or beyond 8
K3_INLINE __m256i first_lanes(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

K3_INLINE f32x16 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
K3_INLINE f32x16 load_n(const float* p, int n) {
  return {_mm256_maskload_ps(p, first_lanes(n)), _mm256_maskload_ps(p + 8, first_lanes(n - 8))};
}
K3_INLINE void store(float* p, f32x16 a) { _mm256_storeu_ps(p, a.lo); _mm256_storeu_ps(p + 8, a.hi); }
K3_INLINE void store_n(float* p, f32x16 a, int n) {
  _mm256_maskstore_ps(p, first_lanes(n), a.lo);
  _mm256_maskstore_ps(p + 8, first_lanes(n - 8), a.hi);
}
K3_INLINE f32x16 splat(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
K3_INLINE f32x16 zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }

K3_INLINE f32x16 add(f32x16 a, f32x16 b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
K3_INLINE f32x16 sub(f32x16 a, f32x16 b) { return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)}; }
K3_INLINE f32x16 mul(f32x16 a, f32x16 b) { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
K3_INLINE f32x16 div(f32x16 a, f32x16 b) { return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)}; }
K3_INLINE f32x16 fma(f32x16 a, f32x16 b, f32x16 c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}

struct f32part { __m256 v; };
K3_INLINE f32part load_part(const float* p) { return {_mm256_loadu_ps(p)}; }
K3_INLINE f32part splat_part(float x) { return {_mm256_set1_ps(x)}; }
K3_INLINE void store(float* p, f32part a) { _mm256_storeu_ps(p, a.v); }
K3_INLINE f32part mul(f32part a, f32part b) { return {_mm256_mul_ps(a.v, b.v)}; }
K3_INLINE f32part fma(f32part a, f32part b, f32part c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }

K3_INLINE f32x16 sqrt(f32x16 a) { return {_mm256_sqrt_ps(a.lo), _mm256_sqrt_ps(a.hi)}; }
K3_INLINE f32x16 abs(f32x16 a) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_andnot_ps(sign, a.lo), _mm256_andnot_ps(sign, a.hi)};
}
K3_INLINE f32x16 copysign(f32x16 magnitude, f32x16 sign) {
  const __m256 bit = _mm256_set1_ps(-0.0f);
  return {_mm256_or_ps(_mm256_andnot_ps(bit, magnitude.lo), _mm256_and_ps(bit, sign.lo)),
          _mm256_or_ps(_mm256_andnot_ps(bit, magnitude.hi), _mm256_and_ps(bit, sign.hi))};
}

K3_INLINE mask16 less(f32x16 a, f32x16 b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ)};
}
K3_INLINE f32x16 select(mask16 m, f32x16 a, f32x16 b) {
  return {_mm256_blendv_ps(b.lo, a.lo, m.lo), _mm256_blendv_ps(b.hi, a.hi, m.hi)};
}
// of a number and a NaN, these instructions take the second operand
K3_INLINE f32x16 at_least(f32x16 a, f32x16 low) { return {_mm256_max_ps(low.lo, a.lo), _mm256_max_ps(low.hi, a.hi)}; }
K3_INLINE f32x16 at_most(f32x16 a, f32x16 high) { return {_mm256_min_ps(high.lo, a.lo), _mm256_min_ps(high.hi, a.hi)}; }

K3_INLINE float sum(f32x16 a) {
  const __m256 eight = _mm256_add_ps(a.lo, a.hi);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
K3_INLINE void store_sums(float* p, const f32x16* a, float factor) {
  for (int i = 0; i < 4; ++i) p[i] = sum(a[i]) * factor;
}
K3_INLINE float highest(f32x16 a) {
  const __m256 eight = _mm256_max_ps(a.lo, a.hi);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

K3_INLINE __m256 widen_bf16(__m128i h) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}
K3_INLINE f32x16 load_bf16(const void* p) {
  const __m128i* h = (const __m128i*)p;
  return {widen_bf16(_mm_loadu_si128(h)), widen_bf16(_mm_loadu_si128(h + 1))};
}
K3_INLINE f32part load_bf16_part(const void* p) { return {widen_bf16(_mm_loadu_si128((const __m128i*)p))}; }
K3_INLINE f32x16 load_bf16_n(const void* p, int n) {
  uint16_t h[16] = {0};
  memcpy(h, p, 2 * (size_t)n);
  return load_bf16(h);
}

K3_INLINE u32x16 load_u32(const void* p) {
  const __m256i* w = (const __m256i*)p;
  return {_mm256_loadu_si256(w), _mm256_loadu_si256(w + 1)};
}
K3_INLINE u32x16 load_u32_n(const void* p, int n) {
  const int* w = (const int*)p;
  return {_mm256_maskload_epi32(w, first_lanes(n)), _mm256_maskload_epi32(w + 8, first_lanes(n - 8))};
}
K3_INLINE u32x16 splat_u32(uint32_t x) { return {_mm256_set1_epi32((int)x), _mm256_set1_epi32((int)x)}; }
K3_INLINE u32x16 bits(f32x16 a) { return {_mm256_castps_si256(a.lo), _mm256_castps_si256(a.hi)}; }
K3_INLINE f32x16 as_float(u32x16 a) { return {_mm256_castsi256_ps(a.lo), _mm256_castsi256_ps(a.hi)}; }
K3_INLINE u32x16 add_u32(u32x16 a, u32x16 b) { return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)}; }
K3_INLINE u32x16 sub_u32(u32x16 a, u32x16 b) { return {_mm256_sub_epi32(a.lo, b.lo), _mm256_sub_epi32(a.hi, b.hi)}; }
K3_INLINE u32x16 shl(u32x16 a, int n) { return {_mm256_slli_epi32(a.lo, n), _mm256_slli_epi32(a.hi, n)}; }
K3_INLINE u32x16 shr(u32x16 a, int n) { return {_mm256_srli_epi32(a.lo, n), _mm256_srli_epi32(a.hi, n)}; }
K3_INLINE u32x16 shr_signed(u32x16 a, int n) { return {_mm256_srai_epi32(a.lo, n), _mm256_srai_epi32(a.hi, n)}; }

// Codes 2k and 2k+1 of a lane are the nibbles of its byte k. An E2M1 value needs only the upper half of a binary32, whose
// two bytes are looked up for all nibbles at once; one dword then holds two values, and code n is a shift or a mask.
// `order` puts the bytes so that the interleave leaves each lane's values in its own dword.
struct e2m1_half { __m256i even[2], odd[2]; };  // codes (0, 2), (4, 6) and (1, 3), (5, 7), lower half first
struct e2m1x8 { e2m1_half lo, hi; };
K3_INLINE __m256i both_halves(__m128i table) { return _mm256_broadcastsi128_si256(table); }
K3_INLINE e2m1_half unpack_e2m1_half(__m256i words) {
  const __m256i order = both_halves(_mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
  const __m256i byte3 = both_halves(_mm_set_epi64x((int64_t)0xc0c0c0c0bfbfbf80, 0x404040403f3f3f00));
  const __m256i byte2 = both_halves(_mm_set_epi64x((int64_t)0xc0804000c0800000, (int64_t)0xc0804000c0800000));
  const __m256i nibble = _mm256_set1_epi8(15);
  const __m256i bytes = _mm256_shuffle_epi8(words, order);
  const __m256i even = _mm256_and_si256(bytes, nibble);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bytes, 4), nibble);
  const __m256i even3 = _mm256_shuffle_epi8(byte3, even), even2 = _mm256_shuffle_epi8(byte2, even);
  const __m256i odd3 = _mm256_shuffle_epi8(byte3, odd), odd2 = _mm256_shuffle_epi8(byte2, odd);
  return {{_mm256_unpacklo_epi8(even2, even3), _mm256_unpackhi_epi8(even2, even3)},
          {_mm256_unpacklo_epi8(odd2, odd3), _mm256_unpackhi_epi8(odd2, odd3)}};
}
K3_INLINE e2m1x8 unpack_e2m1(u32x16 words) { return {unpack_e2m1_half(words.lo), unpack_e2m1_half(words.hi)}; }
K3_INLINE e2m1x8 unpack_e2m1_at(const uint8_t* p) { return unpack_e2m1(load_u32(p)); }
K3_INLINE __m256 e2m1_of_half(const e2m1_half& h, int n) {
  const __m256i two = n & 1 ? h.odd[n / 4] : h.even[n / 4];
  return _mm256_castsi256_ps(n & 2 ? _mm256_and_si256(two, _mm256_set1_epi32((int)0xffff0000)) : _mm256_slli_epi32(two, 16));
}
K3_INLINE f32x16 e2m1(const e2m1x8& codes, int n) { return {e2m1_of_half(codes.lo, n), e2m1_of_half(codes.hi, n)}; }

// scale bytes to 2^(s-127): the exponent field, except that byte 0 is the subnormal 0x00400000. `top` moves scale byte
// g of the low or high 8 lanes to the top of each dword, one bit too high.
K3_INLINE __m256 e8m0_bits(uint32_t four, __m256i top) {
  const __m256i scales = _mm256_srli_epi32(_mm256_shuffle_epi8(_mm256_set1_epi32((int)four), top), 1);
  return _mm256_castsi256_ps(_mm256_max_epi32(scales, _mm256_set1_epi32(0x00400000)));
}
K3_INLINE f32x16 e8m0_packed(uint32_t four) {
  const int g0 = 0x00ffffff, g1 = 0x01ffffff, g2 = 0x02ffffff, g3 = 0x03ffffff;
  return {e8m0_bits(four, _mm256_setr_epi32(g0, g0, g0, g0, g1, g1, g1, g1)),
          e8m0_bits(four, _mm256_setr_epi32(g2, g2, g2, g2, g3, g3, g3, g3))};
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
K3_INLINE __m256i e2m1_bytes_of_half(__m256i words, int odd) {
  const __m256i values = both_halves(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
  const __m256i codes = odd ? _mm256_srli_epi16(words, 4) : words;
  return _mm256_shuffle_epi8(values, _mm256_and_si256(codes, _mm256_set1_epi8(15)));
}
K3_INLINE u32x16 e2m1_bytes(u32x16 words, int odd) {
  return {e2m1_bytes_of_half(words.lo, odd), e2m1_bytes_of_half(words.hi, odd)};
}
K3_INLINE __m256i dot_bytes_of_half(__m256i start, __m256i a, __m256i b, __m256i c, __m256i d) {
  const __m256i pairs = _mm256_add_epi16(_mm256_maddubs_epi16(a, b), _mm256_maddubs_epi16(c, d));
  return _mm256_add_epi32(start, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
K3_INLINE u32x16 dot_bytes(u32x16 start, u32x16 a, u32x16 b, u32x16 c, u32x16 d) {
  return {dot_bytes_of_half(start.lo, a.lo, b.lo, c.lo, d.lo), dot_bytes_of_half(start.hi, a.hi, b.hi, c.hi, d.hi)};
}
K3_INLINE f32x16 to_float(u32x16 a) { return {_mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi)}; }
