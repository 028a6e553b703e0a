// Loops over any number of elements, 16 at a time and then the rest. Include after a simd_<isa>.h.
//
//     K3_FOR_LANES(n, i, lanes) store_lanes(y + i, load_lanes(x + i, lanes), lanes);
#pragma once

#define K3_FOR_LANES(n, i, lanes)        \
  for (size_t i = 0; i < (n); i += 16)   \
    if (const int lanes = (n) - i < 16 ? (int)((n) - i) : 16; true)

K3_INLINE f32x16 load_lanes(const float* p, int lanes) { return lanes == 16 ? load(p) : load_n(p, lanes); }
K3_INLINE f32x16 load_bf16_lanes(const uint8_t* p, int lanes) { return lanes == 16 ? load_bf16(p) : load_bf16_n(p, lanes); }
K3_INLINE void store_lanes(float* p, f32x16 a, int lanes) { lanes == 16 ? store(p, a) : store_n(p, a, lanes); }

// The same as a loop for each of the two cases, so that the 16 of a hot loop cost no branch:
//
//     for_lanes(n, [&](size_t i, int lanes) K3_LANES_BODY { ... });
#define K3_LANES_BODY __attribute__((always_inline))
template <class Body>
K3_INLINE void for_lanes(size_t n, Body&& body) {
  size_t i = 0;
  for (; i + 16 <= n; i += 16) body(i, 16);
  if (i < n) body(i, (int)(n - i));
}
