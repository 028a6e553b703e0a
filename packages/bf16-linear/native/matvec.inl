// out[t][r] = sum_c W[r][c] x[t][c]. Lane j of a sum takes columns j, j+16, j+32, ... in ascending order with fused
// multiply-adds; the 16 lanes are folded by the fixed tree. Tiles of rows x tokens give the parallelism between
// instructions; the order inside one (row, token) pair never changes, so T = 1 and T = 64 agree bit for bit.
//
// One token: kRows rows at a time straight through, all sums in registers. So many streams keep the processor's own prefetch
// busy while one of them waits at the border of a page; whether asking for lines besides is faster depends on the processor
// (kFetchAhead; docs/BENCHMARKS.md).
// Several tokens: kPanel rows and kDepth columns at a time, the sums waiting in memory in between, so that a tile works from
// first-level cache.
// Passes: W once for up to kTokens tokens; x once for every kPanel rows.
#include "matvec.h"

namespace {
using k3::bf16_linear::Problem;

constexpr int kRows = 8;        // of a product with one token: so many sums hide the latency of each, and x is read seldom
constexpr int kPanel = 8;       // rows that share one pass over x, a multiple of every kPartRows
constexpr size_t kTokens = 32;  // tokens that share one pass over W
constexpr size_t kDepth = 512;  // columns of a block: a quarter of a first-level cache for kPanel rows of W

template <int R>
K3_INLINE void add_columns(const uint8_t* const* w, const float* x, size_t c, f32x16* acc) {
  const f32x16 xs = load(x + c);
  for (int r = 0; r < R; ++r) acc[r] = fma(load_bf16(w[r] + 2 * c), xs, acc[r]);
}

// Columns from c on, below `end`, 32 at a time, while the line `ahead` bytes on is asked for. Returns the next column.
template <int R>
K3_INLINE size_t add_lines(const uint8_t* const* w, const float* x, size_t c, size_t end, size_t ahead, f32x16* acc) {
  for (; c + 32 <= end; c += 32) {
    if constexpr (kFetchAhead > 0)
      for (int r = 0; r < R; ++r) __builtin_prefetch(w[r] + 2 * c + ahead);
    add_columns<R>(w, x, c, acc);
    add_columns<R>(w, x, c + 16, acc);
  }
  return c;
}

template <int R>
K3_INLINE void rows_times_one(const Problem& p, size_t row) {
  const uint8_t* w[R];
  f32x16 acc[R];
  for (int r = 0; r < R; ++r) w[r] = p.weights + 2 * p.columns * (row + (size_t)r);
  for (int r = 0; r < R; ++r) acc[r] = zero();
  size_t c = 0;
  if (2 * p.columns > kFetchAhead) c = add_lines<R>(w, p.x, 0, p.columns - kFetchAhead / 2, kFetchAhead, acc);
  // what lies behind the end of a row is the next row, which is at hand: on to the row R further
  c = add_lines<R>(w, p.x, c, p.columns, kFetchAhead + 2 * (R - 1) * p.columns, acc);
  for (; c + 16 <= p.columns; c += 16) add_columns<R>(w, p.x, c, acc);
  if (const int rest = (int)(p.columns - c)) {
    const f32x16 x = load_n(p.x + c, rest);
    for (int r = 0; r < R; ++r) acc[r] = fma(load_bf16_n(w[r] + 2 * c, rest), x, acc[r]);
  }
  for (int r = 0; r < R; ++r) p.out[row + (size_t)r] = sum(acc[r]);
}

void one_token(const Problem& p, size_t row, size_t row_end) {
  for (; row + kRows <= row_end; row += kRows) rows_times_one<kRows>(p, row);
  for (; row < row_end; ++row) rows_times_one<1>(p, row);
}

typedef float Sums[kPanel][kTokens][16];

// A block of columns, a multiple of 16 of them: of W from the panel's first row on, of x from the first token on.
struct Block {
  const uint8_t* w;
  const float* x;
  size_t stride;  // numbers from one row of either to the next
  size_t columns;
};

// sums += W x for R rows and T tokens, a register's lanes at a time
template <int R, int T>
K3_INLINE void add_tile(const Block& b, size_t row, size_t token, Sums sums) {
  const uint8_t* w = b.w + 2 * b.stride * row;
  const float* x = b.x + b.stride * token;
  for (size_t lane = 0; lane < 16; lane += kPartLanes) {
    f32part acc[R][T];
    for (size_t r = 0; r < R; ++r)
      for (size_t t = 0; t < T; ++t) acc[r][t] = load_part(sums[row + r][token + t] + lane);
    for (size_t c = lane; c < b.columns; c += 16) {
      f32part xs[T];
      for (size_t t = 0; t < T; ++t) xs[t] = load_part(x + b.stride * t + c);
      for (size_t r = 0; r < R; ++r) {
        const f32part ws = load_bf16_part(w + 2 * (b.stride * r + c));
        for (size_t t = 0; t < T; ++t) acc[r][t] = fma(ws, xs[t], acc[r][t]);
      }
    }
    for (size_t r = 0; r < R; ++r)
      for (size_t t = 0; t < T; ++t) store(sums[row + r][token + t] + lane, acc[r][t]);
  }
}

// all rows of the panel for `width` tokens, at most T
template <int T>
K3_INLINE void add_tokens(const Block& b, size_t rows, size_t token, size_t width, Sums sums) {
  if constexpr (T > 1) {
    if (width < (size_t)T) return add_tokens<T - 1>(b, rows, token, width, sums);
  }
  size_t r = 0;
  for (; r + kPartRows <= rows; r += kPartRows) add_tile<kPartRows, T>(b, r, token, sums);
  if constexpr (kPartRows > 1)
    for (; r < rows; ++r) add_tile<1, T>(b, r, token, sums);
}

// Tiles of tokens as equal as can be: a narrow one has too few sums to hide the latency of each.
K3_INLINE void add_block(const Block& b, size_t rows, size_t tokens, Sums sums) {
  const size_t tiles = (tokens + kPartColumns - 1) / kPartColumns;
  for (size_t i = 0; i < tiles; ++i) {
    const size_t token = tokens * i / tiles, end = tokens * (i + 1) / tiles;
    add_tokens<kPartColumns>(b, rows, token, end - token, sums);
  }
}

// the ragged last columns, and the fold
K3_INLINE void finish(const Problem& p, size_t row, size_t rows, size_t token, size_t tokens, Sums sums) {
  const size_t whole = p.columns / 16 * 16;
  const int rest = (int)(p.columns - whole);
  for (size_t r = 0; r < rows; ++r) {
    const f32x16 w = rest ? load_bf16_n(p.weights + 2 * (p.columns * (row + r) + whole), rest) : zero();
    for (size_t t = 0; t < tokens; ++t) {
      f32x16 acc = load(sums[r][t]);
      if (rest) acc = fma(w, load_n(p.x + p.columns * (token + t) + whole, rest), acc);
      p.out[p.rows * (token + t) + row + r] = sum(acc);
    }
  }
}

// up to kPanel rows times up to kTokens tokens
void panel(const Problem& p, size_t row, size_t rows, size_t token, size_t tokens) {
  alignas(64) Sums sums;
  for (size_t r = 0; r < rows; ++r) memset(sums[r], 0, tokens * sizeof sums[r][0]);
  const size_t whole = p.columns / 16 * 16;
  for (size_t c = 0; c < whole; c += kDepth) {
    const size_t columns = whole - c < kDepth ? whole - c : kDepth;
    const Block block = {p.weights + 2 * (p.columns * row + c), p.x + p.columns * token + c, p.columns, columns};
    add_block(block, rows, tokens, sums);
  }
  finish(p, row, rows, token, tokens, sums);
}

void multiply(const Problem& p, size_t row_begin, size_t row_end) {
  if (p.tokens == 1) return one_token(p, row_begin, row_end);
  const size_t blocks = (p.tokens + kTokens - 1) / kTokens;
  for (size_t i = 0; i < blocks; ++i) {
    const size_t token = p.tokens * i / blocks, end = p.tokens * (i + 1) / blocks;
    for (size_t row = row_begin; row < row_end; row += kPanel) {
      const size_t rows = row_end - row < (size_t)kPanel ? row_end - row : (size_t)kPanel;
      panel(p, row, rows, token, end - token);
    }
  }
}
}  // namespace

namespace k3::bf16_linear {
const Kernels K3_KERNELS = {multiply};
}
