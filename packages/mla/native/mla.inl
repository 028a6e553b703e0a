// Gated multi-head latent attention in the absorbed form (docs/spec/SPEC.md section 7), per head h and token t:
//   q' = Wk_h^T q_n                     score_s = ([q', q_r] . [c_s, k_r,s]) * scale
//   p = softmax(score over s <= t)      o = Wv_h (sum_s p_s c_s) * sigmoid(gate)
// Positions go in blocks of 64 counted from position 0, with a running maximum: which block a position falls into
// depends on nothing but its number, so a prompt, single steps and any cut between give the same bits. Inside a block
// the sums run in ascending order of position. Passes: the cache once per token, a block stays in cache for all heads;
// Wk and Wv once per kTokenTile tokens.
#include <k3/lanes.h>

#include "mla.h"

namespace {
using namespace k3::mla;

constexpr int kHeads = kPartColumns;              // heads x positions, and heads x parts of the latent, whose sums
constexpr int kPositions = kPartRows;             // fill the register file
constexpr size_t kColumns = kPartRows * kPartLanes;
constexpr int kTokens = 4;                        // tokens that share one look at a row of Wk or Wv
constexpr int kRows = 8;                          // rows of Wk or Wv at a time for one token
constexpr int kValueRows = kTileRows > 2 ? 2 : 1;  // rows of Wv at a time for kTokens tokens

// What one thread holds for its heads: prepared queries and summed latents of a tile of tokens, and the running
// softmax of the token at hand.
struct Work {
  float* query;   // [kTokenTile][heads][row]
  float* summed;  // [kTokenTile][heads][latent]
  float* score;   // [heads][kBlock]
  float *highest, *total, *correction;  // [heads]
};

K3_INLINE Work work_of(const Shape& s, size_t tokens, size_t heads, float* scratch) {
  Work w;
  w.query = scratch;
  w.summed = w.query + tokens * heads * s.row();
  w.score = w.summed + tokens * heads * s.latent;
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

// Asks for the R rows of Wk or Wv that follow those at `rows`, in the order they lie in memory: once for every 32 columns.
template <int R>
K3_INLINE void fetch_rows(const uint8_t* rows, size_t latent, size_t c) {
  if (c % 32 == 0)
    for (size_t r = 0; r < R; ++r) __builtin_prefetch(rows + 2 * R * (latent + c) + 64 * r, 0, 2);
}

// q'[t] += sum of q[t]_d Wk_d over R key channels d, whose rows of Wk follow each other. q, out: strides apart
template <int R, int T>
K3_INLINE void absorb_rows(const uint8_t* wk, const float* q, size_t q_stride, float* out, size_t out_stride, size_t latent) {
  f32x16 qd[T][R];
  for (int t = 0; t < T; ++t)
    for (int r = 0; r < R; ++r) qd[t][r] = splat(q[(size_t)t * q_stride + (size_t)r]);
  for_lanes(latent, [&](size_t c, int lanes) K3_LANES_BODY {
    if constexpr (T == 1) fetch_rows<R>(wk, latent, c);
    f32x16 w[R];
    for (int r = 0; r < R; ++r) w[r] = load_bf16_lanes(wk + 2 * ((size_t)r * latent + c), lanes);
    for (int t = 0; t < T; ++t) {
      float* to = out + (size_t)t * out_stride + c;
      f32x16 acc = load_lanes(to, lanes);
      for (int r = 0; r < R; ++r) acc = fma(w[r], qd[t][r], acc);
      store_lanes(to, acc, lanes);
    }
  });
}

// [q', q_r] of one head for T tokens
template <int T>
K3_INLINE void absorb(const Shape& s, const uint8_t* wk, const float* q, float* out, size_t out_stride) {
  const size_t q_stride = s.query();
  for (size_t t = 0; t < T; ++t) {
    memset(out + t * out_stride, 0, 4 * s.latent);
    memcpy(out + t * out_stride + s.latent, q + t * q_stride + s.nope, 4 * s.shared);
  }
  constexpr int R = T == 1 ? kRows : kTileRows;
  size_t d = 0;
  for (; d + R <= s.nope; d += R) absorb_rows<R, T>(wk + 2 * d * s.latent, q + d, q_stride, out, out_stride, s.latent);
  for (; d < s.nope; ++d) absorb_rows<1, T>(wk + 2 * d * s.latent, q + d, q_stride, out, out_stride, s.latent);
}

// score[h][n] = (query_h . row_n) * scale for H heads and N positions, a register's lanes at a time
template <int H, int N>
K3_INLINE void score_tile(const float* query, const float* rows, size_t width, float scale, float* score) {
  alignas(64) float sums[H][N][16];
  const size_t whole = width / 16 * 16;
  for (size_t lane = 0; lane < 16; lane += kPartLanes) {
    f32part acc[H][N];
    for (int h = 0; h < H; ++h)
      for (int n = 0; n < N; ++n) acc[h][n] = splat_part(0.0f);
    for (size_t c = lane; c < whole; c += 16) {
      f32part q[H];
      for (int h = 0; h < H; ++h) q[h] = load_part(query + (size_t)h * width + c);
      for (int n = 0; n < N; ++n) {
        const f32part row = load_part(rows + (size_t)n * width + c);
        for (int h = 0; h < H; ++h) acc[h][n] = fma(q[h], row, acc[h][n]);
      }
    }
    for (int h = 0; h < H; ++h)
      for (int n = 0; n < N; ++n) store(sums[h][n] + lane, acc[h][n]);
  }
  const int rest = (int)(width - whole);
  for (int h = 0; h < H; ++h) {
    float* to = score + (size_t)h * kBlock;
    f32x16 acc[N];
    for (int n = 0; n < N; ++n) {
      const float *q = query + (size_t)h * width + whole, *row = rows + (size_t)n * width + whole;
      acc[n] = load(sums[h][n]);
      if (rest) acc[n] = fma(load_n(q, rest), load_n(row, rest), acc[n]);
    }
    if constexpr (N == 4) store_sums(to, acc, scale);
    else
      for (int n = 0; n < N; ++n) to[n] = sum(acc[n]) * scale;
  }
}

// Asks for the part of the next rows that falls to heads [begin, end), a cache line at a time.
K3_INLINE void fetch_share(const float* next, size_t numbers, size_t begin, size_t end, size_t heads) {
  for (size_t i = numbers * begin / heads / 16 * 16; i < numbers * end / heads; i += 16) __builtin_prefetch(next + i);
}

// the same for all heads of this thread
template <int N>
K3_INLINE void score_positions(const Shape& s, const float* query, const float* rows, size_t heads, float* score) {
  const size_t width = s.row();
  size_t h = 0;
  for (; h + kHeads <= heads; h += kHeads) {
    fetch_share(rows + N * width, N * width, h, h + kHeads, heads);
    score_tile<kHeads, N>(query + h * width, rows, width, s.score_scale, score + h * kBlock);
  }
  for (; h < heads; ++h) score_tile<1, N>(query + h * width, rows, width, s.score_scale, score + h * kBlock);
}

// Running softmax of one head: scores of `count` positions become weights relative to the highest score so far.
K3_INLINE void soften(float* score, size_t count, float* so_far, float* total, float* correction) {
  f32x16 tops = splat(*so_far);  // NaN is never a top, for it is never greater
  size_t whole = 0;
  for (; whole + 16 <= count; whole += 16) {
    const f32x16 x = load(score + whole);
    tops = select(less(tops, x), x, tops);
  }
  float top = highest(tops);
  for (size_t n = whole; n < count; ++n) top = top < score[n] ? score[n] : top;
  f32x16 added = zero();
  for_lanes(count, [&](size_t n, int lanes) K3_LANES_BODY {
    store_lanes(score + n, exp(sub(load_lanes(score + n, lanes), splat(top))), lanes);
    added = add(added, load_lanes(score + n, lanes));
  });
  *correction = exp1(*so_far - top);
  *total = __builtin_fmaf(*total, *correction, sum(added));
  *so_far = top;
}

// One block of positions: c_n for n < count, and p_n of every head.
struct Block {
  const float* rows;
  size_t stride, count;
  const float *weight, *correction;  // [heads][kBlock], [heads]
};

// summed_h = summed_h * correction_h + sum_n p_n c_n for H heads and kColumns columns of the latent
template <int H>
K3_INLINE void gather_tile(const Block& b, size_t head, size_t column, float* summed, size_t latent) {
  f32part acc[H][kPartRows];
  for (size_t h = 0; h < H; ++h)
    for (size_t v = 0; v < kPartRows; ++v)
      acc[h][v] = mul(load_part(summed + (head + h) * latent + column + kPartLanes * v), splat_part(b.correction[head + h]));
  for (size_t n = 0; n < b.count; ++n) {
    f32part p[H];
    for (size_t h = 0; h < H; ++h) p[h] = splat_part(b.weight[(head + h) * kBlock + n]);
    for (size_t v = 0; v < kPartRows; ++v) {
      const f32part c = load_part(b.rows + n * b.stride + column + kPartLanes * v);
      for (size_t h = 0; h < H; ++h) acc[h][v] = fma(p[h], c, acc[h][v]);
    }
  }
  for (size_t h = 0; h < H; ++h)
    for (size_t v = 0; v < kPartRows; ++v) store(summed + (head + h) * latent + column + kPartLanes * v, acc[h][v]);
}

// the same for one head and up to 16 columns
K3_INLINE void gather_rest(const Block& b, size_t head, size_t column, float* summed, size_t latent) {
  const int lanes = latent - column < 16 ? (int)(latent - column) : 16;
  float* to = summed + head * latent + column;
  f32x16 acc = mul(load_lanes(to, lanes), splat(b.correction[head]));
  for (size_t n = 0; n < b.count; ++n)
    acc = fma(splat(b.weight[head * kBlock + n]), load_lanes(b.rows + n * b.stride + column, lanes), acc);
  store_lanes(to, acc, lanes);
}

K3_INLINE void gather(const Block& b, size_t heads, float* summed, size_t latent) {
  size_t c = 0;
  for (; c + kColumns <= latent; c += kColumns) {
    size_t h = 0;
    for (; h + kHeads <= heads; h += kHeads) gather_tile<kHeads>(b, h, c, summed, latent);
    for (; h < heads; ++h) gather_tile<1>(b, h, c, summed, latent);
  }
  for (; c < latent; c += 16)
    for (size_t h = 0; h < heads; ++h) gather_rest(b, h, c, summed, latent);
}

// One block of positions for all heads of this thread: a few rows for all heads, then a few columns for all heads, so
// that what is read again lies in first-level cache.
void attend_block(const Shape& s, const Work& w, const float* rows, size_t count, size_t heads, const float* query,
                  float* summed) {
  size_t n = 0;
  for (; n + kPositions <= count; n += kPositions)
    score_positions<kPositions>(s, query, rows + n * s.row(), heads, w.score + n);
  for (; n < count; ++n) score_positions<1>(s, query, rows + n * s.row(), heads, w.score + n);
  for (size_t h = 0; h < heads; ++h) soften(w.score + h * kBlock, count, w.highest + h, w.total + h, w.correction + h);
  gather({rows, s.row(), count, w.score, w.correction}, heads, summed, s.latent);
}

// The softmax-weighted sum of latents of one token, divided by the total.
void attend_token(const Shape& s, const Call& call, const Work& w, size_t token, size_t heads, const float* query,
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

// out[t][r] = Wv_r . summed[t] for R value channels and T tokens
template <int R, int T>
K3_INLINE void value_rows(const uint8_t* wv, const float* summed, size_t stride, size_t latent, float* out, size_t out_stride) {
  f32x16 acc[R][T];
  for (int r = 0; r < R; ++r)
    for (int t = 0; t < T; ++t) acc[r][t] = zero();
  for_lanes(latent, [&](size_t c, int lanes) K3_LANES_BODY {
    if constexpr (T == 1) fetch_rows<R>(wv, latent, c);
    f32x16 w[R];
    for (int r = 0; r < R; ++r) w[r] = load_bf16_lanes(wv + 2 * ((size_t)r * latent + c), lanes);
    for (int t = 0; t < T; ++t) {
      const f32x16 x = load_lanes(summed + (size_t)t * stride + c, lanes);
      for (int r = 0; r < R; ++r) acc[r][t] = fma(w[r], x, acc[r][t]);
    }
  });
  for (int r = 0; r < R; ++r)
    for (int t = 0; t < T; ++t) out[(size_t)t * out_stride + (size_t)r] = sum(acc[r][t]);
}

// o of one head for T tokens
template <int T>
K3_INLINE void project(const Shape& s, const uint8_t* wv, const float* summed, size_t stride, const float* gate, float* out) {
  constexpr int R = T == 1 ? kRows : kValueRows;
  const size_t width = s.width();
  size_t v = 0;
  for (; v + R <= s.value; v += R) value_rows<R, T>(wv + 2 * v * s.latent, summed, stride, s.latent, out + v, width);
  for (; v < s.value; ++v) value_rows<1, T>(wv + 2 * v * s.latent, summed, stride, s.latent, out + v, width);
  for (size_t t = 0; t < T; ++t, gate += width, out += width)
    K3_FOR_LANES(s.value, i, lanes)
      store_lanes(out + i, mul(load_lanes(out + i, lanes), sigmoid(load_lanes(gate + i, lanes))), lanes);
}

// Tokens [token, token + count), count <= kTokenTile, for heads [begin, begin + heads)
void attend_tile(const Shape& s, const Call& call, const Work& w, size_t token, size_t count, size_t begin, size_t heads) {
  const size_t slice = 2 * (s.nope + s.value) * s.latent, row_stride = heads * s.row(), sum_stride = heads * s.latent;
  for (size_t h = 0; h < heads; ++h) {
    const uint8_t* wk = call.kv_up + (begin + h) * slice;
    const float* q = call.queries + token * s.query() + (begin + h) * (s.nope + s.shared);
    float* to = w.query + h * s.row();
    size_t t = 0;
    for (; t + kTokens <= count; t += kTokens) absorb<kTokens>(s, wk, q + t * s.query(), to + t * row_stride, row_stride);
    for (; t < count; ++t) absorb<1>(s, wk, q + t * s.query(), to + t * row_stride, row_stride);
  }
  for (size_t t = 0; t < count; ++t)
    attend_token(s, call, w, token + t, heads, w.query + t * row_stride, w.summed + t * sum_stride);
  for (size_t h = 0; h < heads; ++h) {
    const uint8_t* wv = call.kv_up + (begin + h) * slice + 2 * s.nope * s.latent;
    const float* summed = w.summed + h * s.latent;
    const size_t at = token * s.width() + (begin + h) * s.value;
    size_t t = 0;
    for (; t + kTokens <= count; t += kTokens)
      project<kTokens>(s, wv, summed + t * sum_stride, sum_stride, call.gate + at + t * s.width(), call.out + at + t * s.width());
    for (; t < count; ++t)
      project<1>(s, wv, summed + t * sum_stride, sum_stride, call.gate + at + t * s.width(), call.out + at + t * s.width());
  }
}

void attend(const Shape& s, const Call& call, size_t begin, size_t end, float* scratch) {
  const Work w = work_of(s, tile_tokens(call.tokens), end - begin, scratch);
  for (size_t token = 0; token < call.tokens; token += kTokenTile)
    attend_tile(s, call, w, token, tile_tokens(call.tokens - token), begin, end - begin);
}
}  // namespace

namespace k3::mla {
const Kernels K3_KERNELS = {append, attend};
}
