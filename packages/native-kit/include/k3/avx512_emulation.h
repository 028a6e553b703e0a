// AVX-512 through SIMDe, for machines without it: the intrinsics simd_avx512.h uses that SIMDe 0.7 lacks or
// names wrongly, in plain C.
// Only included with K3_EMULATE_AVX512, which is for checking and never for shipping.
#pragma once
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#include <simde/x86/fma.h>
#include <string.h>

static inline simde__m512i k3_maskz_loadu(simde__mmask16 mask, const void* p) {
  uint32_t lanes[16] = {0};
  for (int j = 0; j < 16; ++j)
    if (mask >> j & 1) memcpy(lanes + j, (const uint8_t*)p + 4 * j, 4);
  return simde_mm512_loadu_si512(lanes);
}

static inline void k3_mask_storeu(void* p, simde__mmask16 mask, simde__m512i a) {
  uint32_t lanes[16];
  simde_mm512_storeu_si512(lanes, a);
  for (int j = 0; j < 16; ++j)
    if (mask >> j & 1) memcpy((uint8_t*)p + 4 * j, lanes + j, 4);
}

static inline simde__m512i k3_cvtepu16_epi32(__m256i a) {
  uint16_t half[16];
  uint32_t lanes[16];
  memcpy(half, &a, sizeof half);
  for (int j = 0; j < 16; ++j) lanes[j] = half[j];
  return simde_mm512_loadu_si512(lanes);
}

static inline simde__m512i k3_srai_epi32(simde__m512i a, unsigned n) {
  int32_t lanes[16];
  simde_mm512_storeu_si512(lanes, a);
  for (int j = 0; j < 16; ++j) lanes[j] = lanes[j] >> n;
  return simde_mm512_loadu_si512(lanes);
}

static inline simde__m512 k3_cvtepi32_ps(simde__m512i a) {
  int32_t lanes[16];
  float floats[16];
  simde_mm512_storeu_si512(lanes, a);
  for (int j = 0; j < 16; ++j) floats[j] = (float)lanes[j];
  return simde_mm512_loadu_ps(floats);
}

#undef _mm512_madd_epi16
#undef _mm512_maskz_loadu_ps
#undef _mm512_mask_storeu_ps
#undef _mm512_maskz_loadu_epi32
#undef _mm512_cvtepu16_epi32
#undef _mm512_srai_epi32
#undef _mm512_cvtepi32_ps
#define _mm512_madd_epi16(a, b) simde_mm512_madd_epi16(a, b)
#define _mm512_maskz_loadu_ps(mask, p) simde_mm512_castsi512_ps(k3_maskz_loadu(mask, p))
#define _mm512_mask_storeu_ps(p, mask, a) k3_mask_storeu(p, mask, simde_mm512_castps_si512(a))
#define _mm512_maskz_loadu_epi32(mask, p) k3_maskz_loadu(mask, p)
#define _mm512_cvtepu16_epi32(a) k3_cvtepu16_epi32(a)
#define _mm512_srai_epi32(a, n) k3_srai_epi32(a, n)
#define _mm512_cvtepi32_ps(a) k3_cvtepi32_ps(a)
#define _mm512_shuffle_f32x4(a, b, places) simde_mm512_shuffle_f32x4(a, b, places)
