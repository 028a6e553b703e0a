// Kimi Delta Attention, per head and token (docs/spec/SPEC.md section 6):
//   q, k, v = silu(conv(.))     q, k = unit vectors, q times dim^-0.5     alpha = exp(lower sigmoid(exp(A) (z + dt)))
//   S <- diag(alpha) S          e = beta (v - S^T k)      S <- S + k e^T      o = S^T q
//   y = RMSNorm(o) sigmoid(gate)
// Tokens go one by one in the order of decoding, so a prompt and single steps give the same bits. Value columns of S are
// independent; sums over key channels run in ascending order. So a few columns of S at a time are taken to a block that
// stays in first-level cache (the columns themselves, a row apart, would fall into a few of its sets) while all prepared
// tokens pass through them, one read and one write a token: the pass that writes S of one token decays it for the next
// and reads it. Of memory S is read once and written once a call; the S of the next head is asked for while this one's is
// worked on.
#include <k3/lanes.h>

#include "kda.h"

namespace {
using namespace k3::kda;

constexpr int kColumns = kTileRows > 2 ? 2 : 1;  // registers of S side by side: their sums, and what goes into them

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
K3_APART void conv_silu(const float* x, const float* tail, const float* weight, float* y, size_t t, size_t width,
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

K3_APART void log_decay(const float* z, const float* dt_bias, float exp_a, float lower, float* g, size_t dim) {
  K3_FOR_LANES(dim, i, lanes) {
    const f32x16 shifted = add(load_lanes(z + i, lanes), load_lanes(dt_bias + i, lanes));
    store_lanes(g + i, mul(splat(lower), sigmoid(mul(splat(exp_a), shifted))), lanes);
  }
}

K3_INLINE void sigmoid_all(const float* x, float* y, size_t n) {
  K3_FOR_LANES(n, i, lanes) store_lanes(y + i, sigmoid(load_lanes(x + i, lanes)), lanes);
}

K3_INLINE void exp_all(const float* x, float* y, size_t n) {
  K3_FOR_LANES(n, i, lanes) store_lanes(y + i, exp(load_lanes(x + i, lanes)), lanes);
}

// The delta rule of one head for prepared tokens, the first at each pointer.
struct Delta {
  float* s;
  const float *q, *k, *v, *alpha, *beta;  // beta: after the sigmoid
  size_t stride, alpha_stride, beta_stride, out_stride;  // numbers from one token to the next; stride: of q, k and v
  float* out;
  size_t tokens, dim;
  const float* next;  // S of the head that follows, or null
  float* block;       // [dim][kColumns][16], of no meaning before and after
};

// W registers of S side by side, or what is left of one
template <int W>
struct Columns {
  size_t first;
  int lanes;
};

// u = sum of k_d alpha_d S_d over all key channels; alpha_d S_d goes to the block
template <int W>
K3_INLINE void decay_columns(const Delta& p, Columns<W> c, f32x16* u) {
  for (int w = 0; w < W; ++w) u[w] = zero();
  for (size_t d = 0; d < p.dim; ++d) {
    const f32x16 k = splat(p.k[d]), alpha = splat(p.alpha[d]);
    for (int w = 0; w < W; ++w) {
      if (p.next) __builtin_prefetch(p.next + c.first * p.dim + 16 * (W * d + (size_t)w), 0, 2);
      const f32x16 decayed = mul(alpha, load_lanes(p.s + d * p.dim + c.first + 16 * w, c.lanes));
      store(p.block + 16 * (W * d + (size_t)w), decayed);
      u[w] = fma(k, decayed, u[w]);
    }
  }
}

// o = sum of q_d S_d with S_d = alpha_d S_d + k_d e for token t. To the block goes what decay_columns would leave there for
// the token after it, with its sum in u
template <int W>
K3_INLINE void update_columns(const Delta& p, size_t t, const f32x16* e, f32x16* o, f32x16* u) {
  const float *q = p.q + t * p.stride, *k = p.k + t * p.stride;
  const float *k_after = k + p.stride, *alpha_after = p.alpha + (t + 1) * p.alpha_stride;
  for (int w = 0; w < W; ++w) o[w] = u[w] = zero();
  for (size_t d = 0; d < p.dim; ++d) {
    const f32x16 qd = splat(q[d]), kd = splat(k[d]), kn = splat(k_after[d]), an = splat(alpha_after[d]);
    for (int w = 0; w < W; ++w) {
      float* s = p.block + 16 * (W * d + (size_t)w);
      const f32x16 updated = fma(kd, e[w], load(s)), decayed = mul(an, updated);
      o[w] = fma(qd, updated, o[w]);
      u[w] = fma(kn, decayed, u[w]);
      store(s, decayed);
    }
  }
}

// the same for the last token, whose S_d goes home
template <int W>
K3_INLINE void finish_columns(const Delta& p, Columns<W> c, const f32x16* e, f32x16* o) {
  const float *q = p.q + (p.tokens - 1) * p.stride, *k = p.k + (p.tokens - 1) * p.stride;
  for (int w = 0; w < W; ++w) o[w] = zero();
  for (size_t d = 0; d < p.dim; ++d) {
    const f32x16 qd = splat(q[d]), kd = splat(k[d]);
    for (int w = 0; w < W; ++w) {
      const f32x16 updated = fma(kd, e[w], load(p.block + 16 * (W * d + (size_t)w)));
      o[w] = fma(qd, updated, o[w]);
      store_lanes(p.s + d * p.dim + c.first + 16 * w, updated, c.lanes);
    }
  }
}

template <int W>
K3_INLINE void delta_columns(const Delta& p, Columns<W> c) {
  f32x16 u[W], e[W], o[W];
  decay_columns(p, c, u);
  for (size_t t = 0; t < p.tokens; ++t) {
    const float* v = p.v + t * p.stride + c.first;
    const f32x16 beta = splat(p.beta[t * p.beta_stride]);
    for (int w = 0; w < W; ++w) e[w] = mul(beta, sub(load_lanes(v + 16 * w, c.lanes), u[w]));
    t + 1 < p.tokens ? update_columns<W>(p, t, e, o, u) : finish_columns(p, c, e, o);
    for (int w = 0; w < W; ++w) store_lanes(p.out + t * p.out_stride + c.first + 16 * w, o[w], c.lanes);
  }
}

void delta_rule(const Delta& p) {
  size_t c = 0;
  for (; c + 16 * kColumns <= p.dim; c += 16 * kColumns) delta_columns<kColumns>(p, {c, 16});
  for (; c + 16 <= p.dim; c += 16) delta_columns<1>(p, {c, 16});
  if (c < p.dim) delta_columns<1>(p, {c, (int)(p.dim - c)});
}

K3_APART void gated_norm(const float* o, const float* gain, const float* gate, float eps, float* y, size_t dim) {
  const f32x16 r = splat(1.0f / __builtin_sqrtf(sum_of_squares(o, dim) / (float)dim + eps));
  K3_FOR_LANES(dim, i, lanes) {
    const f32x16 normed = mul(mul(load_lanes(o + i, lanes), r), load_lanes(gain + i, lanes));
    store_lanes(y + i, mul(normed, sigmoid(load_lanes(gate + i, lanes))), lanes);
  }
}

// What a thread has prepared: `tokens` from `token` on of `heads` heads from `head` on.
struct Group {
  size_t token, tokens, head, heads;
  float *q, *k, *v, *alpha;  // [tokens][heads][dim]
  float* beta;               // [tokens][heads]
  float* block;              // of Delta
};

K3_INLINE void convolve(const Shape& p, const Parameters& w, const Rows& rows, const State& state, const Group& g) {
  const size_t width = p.width(), tail = (p.taps - 1) * width, c = g.head * p.dim, n = g.heads * p.dim;
  const float* x[3] = {rows.q, rows.k, rows.v};
  float* y[3] = {g.q, g.k, g.v};
  for (size_t i = 0; i < 3; ++i)
    for (size_t t = 0; t < g.tokens; ++t)
      conv_silu(x[i], state.tails + i * tail, w.conv + i * p.taps * width, y[i] + t * n, g.token + t, width, p.taps, c, n);
}

// Asks for the rows of the token that takes this one's place when the next tokens are prepared.
K3_INLINE void fetch_rows(const Rows& rows, size_t at, size_t n) {
  const float* x[5] = {rows.q, rows.k, rows.v, rows.decay, rows.gate};
  for (size_t i = 0; i < 5; ++i)
    for (size_t c = 0; c < n; c += 16) __builtin_prefetch(x[i] + at + c, 0, 2);
}

// q, k, v, alpha and beta of the group
K3_INLINE void prepare(const Shape& p, const Parameters& w, const Rows& rows, const State& state, const Group& g) {
  convolve(p, w, rows, state, g);
  for (size_t t = 0; t < g.tokens; ++t) {
    const size_t later = g.token + t + kTokens;
    if (later < rows.tokens) fetch_rows(rows, later * p.width() + g.head * p.dim, g.heads * p.dim);
    for (size_t h = 0; h < g.heads; ++h) {
      const size_t at = (t * g.heads + h) * p.dim, c = (g.head + h) * p.dim;
      normalize(g.q + at, g.q + at, p.dim, p.l2_eps, p.query_scale);
      normalize(g.k + at, g.k + at, p.dim, p.l2_eps, 1.0f);
      const float* decay = rows.decay + (g.token + t) * p.width() + c;
      log_decay(decay, w.dt_bias + c, w.exp_a[g.head + h], p.lower_bound, g.alpha + at, p.dim);
      exp_all(g.alpha + at, g.alpha + at, p.dim);
    }
    sigmoid_all(rows.beta + (g.token + t) * p.heads + g.head, g.beta + t * g.heads, g.heads);
  }
}

K3_INLINE void apply(const Shape& p, const Parameters& w, const Rows& rows, const State& state, const Group& g, bool last) {
  const size_t width = p.width(), n = g.heads * p.dim, matrix = p.dim * p.dim;
  for (size_t h = 0; h < g.heads; ++h) {
    const size_t at = h * p.dim, row = g.token * width + (g.head + h) * p.dim;
    float *s = state.recurrence + (g.head + h) * matrix, *out = rows.out + row;
    const float* next = last && g.head + h + 1 < p.heads ? s + matrix : nullptr;
    delta_rule({s, g.q + at, g.k + at, g.v + at, g.alpha + at, g.beta + h, n, n, g.heads, width, out, g.tokens, p.dim, next,
                g.block});
    for (size_t t = 0; t < g.tokens; ++t)
      gated_norm(out + t * width, w.o_norm, rows.gate + row + t * width, p.norm_eps, out + t * width, p.dim);
  }
}

void heads(const Shape& p, const Parameters& w, const Rows& rows, const State& state, size_t begin, size_t end, float* scratch) {
  const size_t width = p.width(), tail = (p.taps - 1) * width, numbers = kPrepared * p.dim;
  float *q = scratch, *k = q + numbers, *v = k + numbers, *alpha = v + numbers, *block = alpha + numbers;
  float* beta = block + 32 * p.dim;
  if (rows.tokens == 0) return;
  const size_t most = rows.tokens < kTokens ? rows.tokens : kTokens, step = kPrepared / most;
  for (size_t h = begin; h < end; h += step) {
    const size_t count = end - h < step ? end - h : step;
    for (size_t t = 0; t < rows.tokens; t += most) {
      const size_t left = rows.tokens - t;
      const Group group = {t, left < most ? left : most, h, count, q, k, v, alpha, beta, block};
      prepare(p, w, rows, state, group);
      apply(p, w, rows, state, group, left <= most);
    }
    advance_tail(rows.q, state.tails, rows.tokens, width, p.taps, h * p.dim, count * p.dim);
    advance_tail(rows.k, state.tails + tail, rows.tokens, width, p.taps, h * p.dim, count * p.dim);
    advance_tail(rows.v, state.tails + 2 * tail, rows.tokens, width, p.taps, h * p.dim, count * p.dim);
  }
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

void recurrence(const Shape& p, const Rows& rows, float* state, size_t begin, size_t end, float* scratch) {
  const size_t width = p.width();
  float* block = scratch + kTokens * p.dim;
  for (size_t h = begin; h < end; ++h)
    for (size_t t = 0; t < rows.tokens; t += kTokens) {
      const size_t at = t * width + h * p.dim, tokens = rows.tokens - t < kTokens ? rows.tokens - t : kTokens;
      for (size_t i = 0; i < tokens; ++i) exp_all(rows.decay + at + i * width, scratch + i * p.dim, p.dim);
      delta_rule({state + h * p.dim * p.dim, rows.q + at, rows.k + at, rows.v + at, scratch, rows.beta + t * p.heads + h,
                  width, p.dim, p.heads, width, rows.out + at, tokens, p.dim, nullptr, block});
    }
}
}  // namespace

namespace k3::kda {
const Kernels K3_KERNELS = {heads, short_conv, l2_normalize, decay_gate, recurrence, exp_all};
}
