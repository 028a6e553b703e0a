// Kimi Delta Attention, per head and token (docs/spec/SPEC.md section 6):
//   q, k, v = silu(conv(.))     q, k = unit vectors, q times dim^-0.5     alpha = exp(lower sigmoid(exp(A) (z + dt)))
//   S <- diag(alpha) S          e = beta (v - S^T k)      S <- S + k e^T      o = S^T q
//   y = RMSNorm(o) sigmoid(gate)
// Tokens go one by one in the order of decoding, so a prompt and single steps give the same bits. Value columns of S are
// independent; sums over key channels run in ascending order. A step goes through S row by row twice: the first pass
// brings it from memory in one stream, the second finds it in the second-level cache, and all tokens of a call pass
// through one head before the next, so S moves from memory once and back once. The decayed value is computed in both
// passes, with the same bits.
#include <k3/lanes.h>

#include "kda.h"

namespace {
using namespace k3::kda;

K3_INLINE float sum_of_squares(const float* x, size_t n) {
  f32x16 acc = zero();
  K3_FOR_LANES(n, i, lanes) {
    const f32x16 v = load_lanes(x + i, lanes);
    acc = fma(v, v, acc);
  }
  return sum(acc);
}

// s at time t of channel c, the tail standing for what came before the call
K3_INLINE const float* conv_input(const float* x, const float* tail, size_t taps, size_t width, size_t t, size_t back) {
  return t >= back ? x + (t - back) * width : tail + (taps - 1 + t - back) * width;
}

// channels [begin, begin + n) of token t, written to y[0..n)
K3_INLINE void conv_silu(const float* x, const float* tail, const float* weight, float* y, size_t t, size_t width,
                         size_t taps, size_t begin, size_t n) {
  K3_FOR_LANES(n, i, lanes) {
    const size_t c = begin + i;
    f32x16 u = mul(load_lanes(weight + c, lanes), load_lanes(conv_input(x, tail, taps, width, t, taps - 1) + c, lanes));
    for (size_t tap = 1; tap < taps; ++tap) {
      const float* s = conv_input(x, tail, taps, width, t, taps - 1 - tap);
      u = fma(load_lanes(weight + tap * width + c, lanes), load_lanes(s + c, lanes), u);
    }
    store_lanes(y + i, mul(u, sigmoid(u)), lanes);
  }
}

// the last taps-1 inputs become the tail; ascending, so that a short call may shift the old tail in place
K3_INLINE void advance_tail(const float* x, float* tail, size_t tokens, size_t width, size_t taps, size_t begin, size_t n) {
  if (tokens == 0) return;
  for (size_t j = 0; j + 1 < taps; ++j) {
    const float* from = conv_input(x, tail, taps, width, tokens - 1, taps - 2 - j);
    memmove(tail + j * width + begin, from + begin, 4 * n);
  }
}

K3_INLINE void normalize(const float* x, float* y, size_t dim, float eps, float scale) {
  const f32x16 r = splat(1.0f / __builtin_sqrtf(sum_of_squares(x, dim) + eps)), s = splat(scale);
  K3_FOR_LANES(dim, i, lanes) store_lanes(y + i, mul(mul(load_lanes(x + i, lanes), r), s), lanes);
}

K3_INLINE void log_decay(const float* z, const float* dt_bias, float exp_a, float lower, float* g, size_t dim) {
  K3_FOR_LANES(dim, i, lanes) {
    const f32x16 shifted = add(load_lanes(z + i, lanes), load_lanes(dt_bias + i, lanes));
    store_lanes(g + i, mul(splat(lower), sigmoid(mul(splat(exp_a), shifted))), lanes);
  }
}

K3_INLINE void exp_all(const float* x, float* y, size_t n) {
  K3_FOR_LANES(n, i, lanes) store_lanes(y + i, exp(load_lanes(x + i, lanes)), lanes);
}

// u += sum of k_d alpha_d S_d over R key channels d, whose rows of S follow each other
template <int R>
K3_INLINE void read_rows(const float* s, const float* k, const float* alpha, float* u, size_t dim) {
  f32x16 kd[R], a[R];
  for (int r = 0; r < R; ++r) kd[r] = splat(k[r]), a[r] = splat(alpha[r]);
  for_lanes(dim, [&](size_t c, int lanes) K3_LANES_BODY {
    f32x16 read = load_lanes(u + c, lanes);
    for (int r = 0; r < R; ++r)
      read = fma(kd[r], mul(a[r], load_lanes(s + (size_t)r * dim + c, lanes)), read);
    store_lanes(u + c, read, lanes);
  });
}

// S_d = alpha_d S_d + k_d e and o += q_d S_d for R key channels
template <int R>
K3_INLINE void update_rows(float* s, const float* q, const float* k, const float* alpha, const float* e, float* o,
                           size_t dim) {
  f32x16 qd[R], kd[R], a[R];
  for (int r = 0; r < R; ++r) qd[r] = splat(q[r]), kd[r] = splat(k[r]), a[r] = splat(alpha[r]);
  for_lanes(dim, [&](size_t c, int lanes) K3_LANES_BODY {
    const f32x16 error = load_lanes(e + c, lanes);
    f32x16 out = load_lanes(o + c, lanes);
    for (int r = 0; r < R; ++r) {
      float* at = s + (size_t)r * dim + c;
      const f32x16 updated = fma(kd[r], error, mul(a[r], load_lanes(at, lanes)));
      store_lanes(at, updated, lanes);
      out = fma(qd[r], updated, out);
    }
    store_lanes(o + c, out, lanes);
  });
}

// One token of one head. e: [dim], overwritten
K3_INLINE void delta_step(float* s, const float* q, const float* k, const float* v, const float* alpha, float beta,
                          float* e, float* o, size_t dim) {
  memset(e, 0, 4 * dim);
  size_t d = 0;
  for (; d + kTileRows <= dim; d += kTileRows) read_rows<kTileRows>(s + d * dim, k + d, alpha + d, e, dim);
  for (; d < dim; ++d) read_rows<1>(s + d * dim, k + d, alpha + d, e, dim);
  K3_FOR_LANES(dim, c, lanes)
    store_lanes(e + c, mul(splat(beta), sub(load_lanes(v + c, lanes), load_lanes(e + c, lanes))), lanes);
  memset(o, 0, 4 * dim);
  for (d = 0; d + kTileRows <= dim; d += kTileRows)
    update_rows<kTileRows>(s + d * dim, q + d, k + d, alpha + d, e, o, dim);
  for (; d < dim; ++d) update_rows<1>(s + d * dim, q + d, k + d, alpha + d, e, o, dim);
}

K3_INLINE void gated_norm(const float* o, const float* gain, const float* gate, float eps, float* y, size_t dim) {
  const f32x16 r = splat(1.0f / __builtin_sqrtf(sum_of_squares(o, dim) / (float)dim + eps));
  K3_FOR_LANES(dim, i, lanes) {
    const f32x16 normed = mul(mul(load_lanes(o + i, lanes), r), load_lanes(gain + i, lanes));
    store_lanes(y + i, mul(normed, sigmoid(load_lanes(gate + i, lanes))), lanes);
  }
}

void head(const Shape& p, const Parameters& w, const Rows& rows, const State& state, size_t h, float* scratch) {
  const size_t dim = p.dim, width = p.width(), c = h * dim, tail = (p.taps - 1) * width;
  float *q = scratch, *k = q + dim, *v = k + dim, *alpha = v + dim, *e = alpha + dim, *o = e + dim;
  float* s = state.recurrence + h * dim * dim;
  for (size_t t = 0; t < rows.tokens; ++t) {
    conv_silu(rows.q, state.tails, w.conv, q, t, width, p.taps, c, dim);
    conv_silu(rows.k, state.tails + tail, w.conv + p.taps * width, k, t, width, p.taps, c, dim);
    conv_silu(rows.v, state.tails + 2 * tail, w.conv + 2 * p.taps * width, v, t, width, p.taps, c, dim);
    normalize(q, q, dim, p.l2_eps, p.query_scale);
    normalize(k, k, dim, p.l2_eps, 1.0f);
    log_decay(rows.decay + t * width + c, w.dt_bias + c, w.exp_a[h], p.lower_bound, alpha, dim);
    exp_all(alpha, alpha, dim);
    delta_step(s, q, k, v, alpha, sigmoid1(rows.beta[t * p.heads + h]), e, o, dim);
    gated_norm(o, w.o_norm, rows.gate + t * width + c, p.norm_eps, rows.out + t * width + c, dim);
  }
  advance_tail(rows.q, state.tails, rows.tokens, width, p.taps, c, dim);
  advance_tail(rows.k, state.tails + tail, rows.tokens, width, p.taps, c, dim);
  advance_tail(rows.v, state.tails + 2 * tail, rows.tokens, width, p.taps, c, dim);
}

void short_conv(const float* x, float* tail, const float* weight, float* y, size_t tokens, size_t width, size_t taps,
                size_t begin, size_t end) {
  for (size_t t = 0; t < tokens; ++t) conv_silu(x, tail, weight, y + t * width + begin, t, width, taps, begin, end - begin);
  advance_tail(x, tail, tokens, width, taps, begin, end - begin);
}

void l2_normalize(const float* x, float* y, size_t rows, size_t dim, float eps, float scale) {
  for (size_t r = 0; r < rows; ++r) normalize(x + r * dim, y + r * dim, dim, eps, scale);
}

void decay_gate(const Shape& p, const Parameters& w, const float* z, float* g, size_t tokens) {
  for (size_t t = 0; t < tokens; ++t)
    for (size_t h = 0; h < p.heads; ++h) {
      const size_t at = t * p.width() + h * p.dim;
      log_decay(z + at, w.dt_bias + h * p.dim, w.exp_a[h], p.lower_bound, g + at, p.dim);
    }
}

void recurrence(const Shape& p, const Rows& rows, float* state, size_t h, float* scratch) {
  float *s = state + h * p.dim * p.dim, *alpha = scratch, *e = alpha + p.dim;
  for (size_t t = 0; t < rows.tokens; ++t) {
    const size_t at = t * p.width() + h * p.dim;
    exp_all(rows.decay + at, alpha, p.dim);
    delta_step(s, rows.q + at, rows.k + at, rows.v + at, alpha, rows.beta[t * p.heads + h], e, rows.out + at, p.dim);
  }
}
}  // namespace

namespace k3::kda {
const Kernels K3_KERNELS = {head, short_conv, l2_normalize, decay_gate, recurrence, exp_all};
}
