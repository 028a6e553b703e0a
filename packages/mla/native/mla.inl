// Gated multi-head latent attention in the absorbed form (docs/spec/SPEC.md section 7), per head h and token t:
//   q' = Wk_h^T q_n                     score_s = ([q', q_r] . [c_s, k_r,s]) * scale
//   p = softmax(score over s <= t)      o = Wv_h (sum_s p_s c_s) * sigmoid(gate)
// Positions go in blocks of 64 counted from position 0, with a running maximum: which block a position falls into
// depends on nothing but its number, so a prompt, single steps and any cut between give the same bits. Inside a block
// the sums run in ascending order of position. Passes: the cache once per token, a block stays in cache for all heads.
#include <k3/lanes.h>

#include "mla.h"

namespace {
using namespace k3::mla;

// What one thread holds for its heads: prepared queries and summed latents of a tile of tokens, and the running
// softmax of the token at hand.
struct Work {
  float* query;   // [kTokenTile][heads][row]
  float* summed;  // [kTokenTile][heads][latent]
  float* score;   // [heads][kBlock]
  float *highest, *total, *correction;  // [heads]
};

K3_INLINE Work work_of(const Shape& s, size_t heads, float* scratch) {
  Work w;
  w.query = scratch;
  w.summed = w.query + kTokenTile * heads * s.row();
  w.score = w.summed + kTokenTile * heads * s.latent;
  w.highest = w.score + heads * kBlock;
  w.total = w.highest + heads;
  w.correction = w.total + heads;
  return w;
}

void append(const Shape& s, const float* kv, const float* gain, float* rows, size_t tokens) {
  for (size_t t = 0; t < tokens; ++t) {
    const float* from = kv + t * s.row();
    float* to = rows + t * s.row();
    f32x16 squares = zero();
    K3_FOR_LANES(s.latent, i, lanes) {
      const f32x16 c = load_lanes(from + i, lanes);
      squares = fma(c, c, squares);
    }
    const f32x16 r = splat(1.0f / __builtin_sqrtf(sum(squares) / (float)s.latent + s.norm_eps));
    K3_FOR_LANES(s.latent, i, lanes)
      store_lanes(to + i, mul(mul(load_lanes(from + i, lanes), r), load_lanes(gain + i, lanes)), lanes);
    memcpy(to + s.latent, from + s.latent, 4 * s.shared);
  }
}

// q'[r] = sum_d Wk[d][r] q[d] for N vectors of r and T tokens; then q_r behind it.
template <int T>
K3_INLINE void absorb_query(const Shape& s, const uint8_t* wk, const float* const* q, float* const* out) {
  K3_FOR_LANES(s.latent, r, lanes) {
    f32x16 acc[T];
    for (int t = 0; t < T; ++t) acc[t] = zero();
    for (size_t d = 0; d < s.nope; ++d) {
      const f32x16 w = load_bf16_lanes(wk + 2 * (d * s.latent + r), lanes);
      for (int t = 0; t < T; ++t) acc[t] = fma(w, splat(q[t][d]), acc[t]);
    }
    for (int t = 0; t < T; ++t) store_lanes(out[t] + r, acc[t], lanes);
  }
  for (int t = 0; t < T; ++t) memcpy(out[t] + s.latent, q[t] + s.nope, 4 * s.shared);
}

// score[h][n] = (query_h . row_n) * scale for H heads and N positions
template <int H, int N>
K3_INLINE void score_tile(const float* query, const float* rows, size_t width, float scale, float* score) {
  f32x16 acc[H][N];
  for (int h = 0; h < H; ++h)
    for (int n = 0; n < N; ++n) acc[h][n] = zero();
  K3_FOR_LANES(width, c, lanes) {
    f32x16 q[H];
    for (int h = 0; h < H; ++h) q[h] = load_lanes(query + (size_t)h * width + c, lanes);
    for (int n = 0; n < N; ++n) {
      const f32x16 row = load_lanes(rows + (size_t)n * width + c, lanes);
      for (int h = 0; h < H; ++h) acc[h][n] = fma(q[h], row, acc[h][n]);
    }
  }
  for (int h = 0; h < H; ++h)
    for (int n = 0; n < N; ++n) score[(size_t)h * kBlock + (size_t)n] = sum(acc[h][n]) * scale;
}

template <int H>
K3_INLINE void score_heads(const float* query, const float* rows, size_t width, float scale, size_t count, float* score) {
  size_t n = 0;
  for (; n + kTileColumns <= count; n += kTileColumns)
    score_tile<H, kTileColumns>(query, rows + n * width, width, scale, score + n);
  for (; n < count; ++n) score_tile<H, 1>(query, rows + n * width, width, scale, score + n);
}

// Running softmax of one head: scores of `count` positions become weights relative to the highest score so far.
K3_INLINE void soften(float* score, size_t count, float* highest, float* total, float* correction) {
  float top = *highest;
  for (size_t n = 0; n < count; ++n) top = top < score[n] ? score[n] : top;
  f32x16 added = zero();
  K3_FOR_LANES(count, n, lanes) {
    store_lanes(score + n, exp(sub(load_lanes(score + n, lanes), splat(top))), lanes);
    added = add(added, load_lanes(score + n, lanes));
  }
  *correction = exp1(*highest - top);
  *total = __builtin_fmaf(*total, *correction, sum(added));
  *highest = top;
}

// summed[h] = summed[h] * correction[h] + sum_n weight[h][n] latent_n, for H heads and N vectors of the latent
template <int H, int N>
K3_INLINE void gather_tile(const Shape& s, const float* rows, const float* weight, const float* correction, size_t count,
                           float* summed, int lanes) {
  f32x16 acc[H][N];
  for (int h = 0; h < H; ++h)
    for (int v = 0; v < N; ++v)
      acc[h][v] = mul(load_lanes(summed + (size_t)h * s.latent + 16 * v, lanes), splat(correction[h]));
  for (size_t n = 0; n < count; ++n) {
    f32x16 c[N];
    for (int v = 0; v < N; ++v) c[v] = load_lanes(rows + n * s.row() + 16 * v, lanes);
    for (int h = 0; h < H; ++h) {
      const f32x16 p = splat(weight[(size_t)h * kBlock + n]);
      for (int v = 0; v < N; ++v) acc[h][v] = fma(p, c[v], acc[h][v]);
    }
  }
  for (int h = 0; h < H; ++h)
    for (int v = 0; v < N; ++v) store_lanes(summed + (size_t)h * s.latent + 16 * v, acc[h][v], lanes);
}

template <int H>
K3_INLINE void gather_heads(const Shape& s, const float* rows, const float* weight, const float* correction, size_t count,
                            float* summed) {
  constexpr size_t kColumns = 16 * kTileRows;
  size_t c = 0;
  for (; c + kColumns <= s.latent; c += kColumns)
    gather_tile<H, kTileRows>(s, rows + c, weight, correction, count, summed + c, 16);
  for (; c < s.latent; c += 16)
    gather_tile<H, 1>(s, rows + c, weight, correction, count, summed + c, s.latent - c < 16 ? (int)(s.latent - c) : 16);
}

// One block of positions for all heads of this thread.
K3_INLINE void attend_block(const Shape& s, const Work& w, const float* rows, size_t count, size_t heads, float* query,
                            float* summed) {
  size_t h = 0;
  for (; h + kTileRows <= heads; h += kTileRows)
    score_heads<kTileRows>(query + h * s.row(), rows, s.row(), s.score_scale, count, w.score + h * kBlock);
  for (; h < heads; ++h) score_heads<1>(query + h * s.row(), rows, s.row(), s.score_scale, count, w.score + h * kBlock);
  for (h = 0; h < heads; ++h) soften(w.score + h * kBlock, count, w.highest + h, w.total + h, w.correction + h);
  for (h = 0; h + kTileRows <= heads; h += kTileRows)
    gather_heads<kTileRows>(s, rows, w.score + h * kBlock, w.correction + h, count, summed + h * s.latent);
  for (; h < heads; ++h) gather_heads<1>(s, rows, w.score + h * kBlock, w.correction + h, count, summed + h * s.latent);
}

// The softmax-weighted sum of latents of one token, divided by the total.
K3_INLINE void attend_token(const Shape& s, const Call& call, const Work& w, size_t token, size_t heads, float* query,
                            float* summed) {
  for (size_t h = 0; h < heads; ++h) {
    w.highest[h] = -__builtin_inff();
    w.total[h] = 0.0f;
  }
  memset(summed, 0, 4 * heads * s.latent);
  const size_t positions = call.cached + token + 1;
  for (size_t first = 0; first < positions; first += kBlock) {
    const size_t count = positions - first < kBlock ? positions - first : kBlock;
    attend_block(s, w, call.cache + first * s.row(), count, heads, query, summed);
  }
  for (size_t h = 0; h < heads; ++h) {
    const f32x16 total = splat(w.total[h]);
    K3_FOR_LANES(s.latent, r, lanes)
      store_lanes(summed + h * s.latent + r, div(load_lanes(summed + h * s.latent + r, lanes), total), lanes);
  }
}

// o[v] = (Wv[v] . summed) * sigmoid(gate[v]) for T tokens
template <int T>
K3_INLINE void project_value(const Shape& s, const uint8_t* wv, const float* const* summed, const float* const* gate,
                             float* const* out) {
  for (size_t v = 0; v < s.value; ++v) {
    f32x16 acc[T];
    for (int t = 0; t < T; ++t) acc[t] = zero();
    K3_FOR_LANES(s.latent, r, lanes) {
      const f32x16 w = load_bf16_lanes(wv + 2 * (v * s.latent + r), lanes);
      for (int t = 0; t < T; ++t) acc[t] = fma(w, load_lanes(summed[t] + r, lanes), acc[t]);
    }
    for (int t = 0; t < T; ++t) out[t][v] = sum(acc[t]);
  }
  for (int t = 0; t < T; ++t)
    K3_FOR_LANES(s.value, v, lanes)
      store_lanes(out[t] + v, mul(load_lanes(out[t] + v, lanes), sigmoid(load_lanes(gate[t] + v, lanes))), lanes);
}

template <int T>
void attend_tile(const Shape& s, const Call& call, const Work& w, size_t token, size_t begin, size_t end) {
  const size_t heads = end - begin, slice = 2 * (s.nope + s.value) * s.latent;
  for (size_t h = 0; h < heads; ++h) {
    const float* q[T];
    float* to[T];
    for (int t = 0; t < T; ++t) {
      q[t] = call.queries + (token + (size_t)t) * s.query() + (begin + h) * (s.nope + s.shared);
      to[t] = w.query + ((size_t)t * heads + h) * s.row();
    }
    absorb_query<T>(s, call.kv_up + (begin + h) * slice, q, to);
  }
  for (int t = 0; t < T; ++t)
    attend_token(s, call, w, token + (size_t)t, heads, w.query + (size_t)t * heads * s.row(),
                 w.summed + (size_t)t * heads * s.latent);
  for (size_t h = 0; h < heads; ++h) {
    const float *summed[T], *gate[T];
    float* to[T];
    for (int t = 0; t < T; ++t) {
      const size_t at = (token + (size_t)t) * s.width() + (begin + h) * s.value;
      summed[t] = w.summed + ((size_t)t * heads + h) * s.latent;
      gate[t] = call.gate + at;
      to[t] = call.out + at;
    }
    project_value<T>(s, call.kv_up + (begin + h) * slice + 2 * s.nope * s.latent, summed, gate, to);
  }
}

void attend(const Shape& s, const Call& call, size_t begin, size_t end, float* scratch) {
  const Work w = work_of(s, end - begin, scratch);
  size_t token = 0;
  for (; token + kTokenTile <= call.tokens; token += kTokenTile) attend_tile<kTokenTile>(s, call, w, token, begin, end);
  for (; token < call.tokens; ++token) attend_tile<1>(s, call, w, token, begin, end);
}
}  // namespace

namespace k3::mla {
const Kernels K3_KERNELS = {append, attend};
}
