// What the simd_<isa>.h headers share. A kernel is written once against this vocabulary, in an .inl file, and
// stamped per instruction set:
//
//     // matvec_avx2.cc
//     #include <k3/simd_avx2.h>
//     #include "matvec.inl"
//
// f32x16 and u32x16 are the 16 virtual lanes of docs/NUMERICS.md. Every function below is exact or correctly
// rounded per lane (IEEE binary32), so a kernel gives the same bits whatever it is stamped with:
//
//     load store (and _n: the first n < 16 lanes, zero elsewhere)   splat zero
//     add sub mul div fma (a*b + c, one rounding) sqrt abs copysign
//     less (mask) select(mask, a, b): a where the mask is set
//     at_least(a, low) at_most(a, high): low or high, which are numbers, where a is beyond it; a NaN stays one
//     sum: the fixed tree j += j+8, j+4, j+2, j+1      highest: largest lane
//     store_sums(p, a, factor): the sums of four, each times factor, to four floats
//     load_bf16 (and _n): 16 bfloat16 widened
//     bits as_float add_u32 sub_u32 shl shr shr_signed load_u32
//     e2m1(unpack_e2m1(words), n): value of the 4-bit code n (0..7) of every lane
//     unpack_e2m1_at(p): unpack_e2m1 of the 64 bytes at p, which may read the 3 bytes behind them
//     e8m0x4 / e8m0_n: scale bytes, one per 4 lanes
//     e2m1_bytes(words, odd): a byte 12 + 2 value, 0 .. 24, for the even (0) or odd (1) code of every byte
//     dot_bytes(start, a, b, c, d): lane j of start plus its four products a b and four c d; a, c <= 24, b, d signed
//     to_float: lanes as signed integers, below 2^24
//     scale(a, n): a 2^n for whole n, rounded once; only where an instruction does it, which defines K3_SCALE
//
// f32part is what one register holds, kPartLanes of the 16: load_part load_bf16_part store mul fma. A tile of kPartRows
// x kPartColumns of them fits the register file, so a product of many columns goes through the lanes part by part.
//
// kFetchAhead: how many bytes ahead of itself a stream through memory asks for lines, where that is faster than leaving it
// to the processor; 0 where it is not, or where nobody has measured (docs/BENCHMARKS.md).
//
// Everything is static: two stamps of one .inl must not share a symbol, or the linker might keep the copy that
// was compiled for the bigger machine. For the same reason no C++ library header is included here or in an .inl.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define K3_INLINE static inline __attribute__((always_inline, unused))
// For a loop that needs the registers for itself: inlined into a large function, its pointers are spilled into vector
// registers and wait behind the arithmetic.
#define K3_APART static __attribute__((noinline, unused))
#define K3_CAT_(a, b) a##b
#define K3_CAT(a, b) K3_CAT_(a, b)
// the kernel table of this stamp, e.g. kernels_avx2
#define K3_KERNELS K3_CAT(kernels_, K3_ISA)

static constexpr int kLanes = 16;

// Before a loop of a few iterations whose body needs its index as a constant.
#if defined(__clang__)
#define K3_UNROLL _Pragma("clang loop unroll(full)")
#else
#define K3_UNROLL _Pragma("GCC unroll 16")
#endif

K3_INLINE uint32_t bits_of(float x) {
  uint32_t u;
  memcpy(&u, &x, 4);
  return u;
}
K3_INLINE float bf16_to_f32(uint16_t h) {
  uint32_t u = (uint32_t)h << 16;
  float f;
  memcpy(&f, &u, 4);
  return f;
}
