// Which instruction sets this process may use: cpuid says what the CPU has, XGETBV what the system saves.
#pragma once
#include "isa_table.h"
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace k3 {

inline const char* isa_name(Isa isa) {
  static constexpr const char* names[] = {"scalar", "avx2", "avx512", "neon"};
  return names[static_cast<int>(isa)];
}

#if defined(__x86_64__)
inline bool x86_has(bool want_avx512) {
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return false;
  const unsigned fma = 1u << 12, osxsave = 1u << 27, avx = 1u << 28;
  if ((c & (fma | osxsave | avx)) != (fma | osxsave | avx)) return false;
  unsigned lo, hi;
  __asm__("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  const unsigned ymm = 0x6, zmm = 0xe6, avx2 = 1u << 5;
  const unsigned avx512_f_dq_bw_vl = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;
#ifndef K3_EMULATE_AVX512
  if (want_avx512) return (lo & zmm) == zmm && (b & avx512_f_dq_bw_vl) == avx512_f_dq_bw_vl;
#else
  (void)zmm, (void)avx512_f_dq_bw_vl, (void)want_avx512;
#endif
  return (lo & ymm) == ymm && (b & avx2);
}

// AVX-512 VNNI, which not every CPU with AVX-512 has. The system saves nothing more for it.
inline bool avx512_has_vnni() {
#ifdef K3_EMULATE_AVX512
  return true;
#else
  unsigned a, b, c, d;
  return x86_has(true) && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c & 1u << 11);
#endif
}
#endif

inline bool isa_supported(Isa isa) {
  switch (isa) {
    case Isa::scalar: return true;
#if defined(__x86_64__)
    case Isa::avx2: return x86_has(false);
    case Isa::avx512: return x86_has(true);
#elif defined(__aarch64__)
    case Isa::neon: return true;  // part of the AArch64 base
#endif
    default: return false;
  }
}

}  // namespace k3
