// exp, tanh and sigmoid over the 16 lanes: one polynomial for every instruction set, no libm, so that the bits agree
// everywhere. NaN stays NaN. Include after a simd_<isa>.h.
// Errors in ulp, measured by benchmarks/transcendentals: docs/NUMERICS.md.
#pragma once

struct ExpParts {
  f32x16 fraction;  // e^r - 1 with |r| <= ln(2)/2
  f32x16 n;
  u32x16 exponent;  // n as two's complement
};

// x = n ln2 + r. Adding 1.5 * 2^23 rounds x/ln2 to the integer n, which then sits in the low mantissa bits.
// e^r - 1 is its Taylor polynomial of degree 7: the remainder is below 2^-27 of e^r.
K3_INLINE ExpParts exp_parts(f32x16 x) {
  const f32x16 magic = splat(12582912.0f);
  const f32x16 shifted = fma(x, splat(1.44269504f), magic);
  const f32x16 n = sub(shifted, magic);
  f32x16 r = fma(n, splat(-0.693359375f), x);  // ln2 in two parts; the first has 10 bits, so n * it is exact
  r = fma(n, splat(2.12194440e-4f), r);
  f32x16 p = splat(1.0f / 5040.0f);
  p = fma(p, r, splat(1.0f / 720.0f));
  p = fma(p, r, splat(1.0f / 120.0f));
  p = fma(p, r, splat(1.0f / 24.0f));
  p = fma(p, r, splat(1.0f / 6.0f));
  p = fma(p, r, splat(0.5f));
  return {fma(mul(r, r), p, r), n, sub_u32(bits(shifted), bits(magic))};
}

K3_INLINE f32x16 power_of_two(u32x16 n) { return as_float(shl(add_u32(n, splat_u32(127)), 23)); }

// e^x. Without an instruction for it, scaling in two steps keeps both factors normal, so that here too subnormal results
// round once and overflow is infinity.
K3_INLINE f32x16 exp(f32x16 x) {
  const ExpParts e = exp_parts(at_most(at_least(x, splat(-105.0f)), splat(89.0f)));
  const f32x16 value = add(e.fraction, splat(1.0f));
#ifdef K3_SCALE
  return scale(value, e.n);
#else
  const u32x16 half = shr_signed(e.exponent, 1);
  return mul(mul(value, power_of_two(half)), power_of_two(sub_u32(e.exponent, half)));
#endif
}

// 1 / (1 + e^-x), through e^-|x| so that neither tail overflows: a very negative x gives e^x, subnormal if need be.
K3_INLINE f32x16 sigmoid(f32x16 x) {
  const f32x16 e = exp(copysign(x, splat(-1.0f)));
  const f32x16 numerator = select(less(x, zero()), e, splat(1.0f));
  return div(numerator, add(e, splat(1.0f)));
}

// tanh|x| = -m / (2 + m) with m = e^(-2|x|) - 1, which loses nothing near zero; beyond 9.1 the result rounds to 1.
K3_INLINE f32x16 tanh(f32x16 x) {
  const ExpParts e = exp_parts(at_least(mul(copysign(x, splat(-1.0f)), splat(2.0f)), splat(-20.0f)));
  const f32x16 power = power_of_two(e.exponent);
  const f32x16 m = fma(power, e.fraction, sub(power, splat(1.0f)));
  return copysign(div(m, add(m, splat(2.0f))), x);
}

// What many numbers are divided by. A power of two has an exact inverse: the product with it is the quotient to the bit.
struct Divisor {
  float value;
  float inverse;  // 0: not exact
};
K3_INLINE Divisor divisor(float value) { return {value, bits_of(value) & 0x007fffffu ? 0.0f : 1.0f / value}; }
K3_INLINE f32x16 div(f32x16 a, const Divisor& d) { return d.inverse > 0 ? mul(a, splat(d.inverse)) : div(a, splat(d.value)); }

// SiTU-GLU: beta tanh(gate / beta) sigmoid(gate) * linear tanh(up / linear). The sigmoid takes the raw gate.
K3_INLINE f32x16 situ(f32x16 gate, f32x16 up, const Divisor& beta, const Divisor& linear) {
  const f32x16 capped_gate = mul(splat(beta.value), tanh(div(gate, beta)));
  const f32x16 capped_up = mul(splat(linear.value), tanh(div(up, linear)));
  return mul(mul(capped_gate, sigmoid(gate)), capped_up);
}

// Vectors of one lane's worth of work: used for scalars that must have the lanes' bits.
K3_INLINE float first(f32x16 a) {
  float lanes[16];
  store(lanes, a);
  return lanes[0];
}
K3_INLINE float exp1(float x) { return first(exp(splat(x))); }
K3_INLINE float sigmoid1(float x) { return first(sigmoid(splat(x))); }
