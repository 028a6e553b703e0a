// out[t][r] = sum_c W[r][c] x[t][c]. Lane j of a sum takes columns j, j+16, j+32, ... in ascending order with fused
// multiply-adds; the 16 lanes are folded by the fixed tree. Tiles of rows x tokens give the parallelism between
// instructions; the order inside one (row, token) pair never changes, so T = 1 and T = 64 agree bit for bit.
// Passes: W once per tile of tokens, x from cache.
#include "matvec.h"

namespace {
using k3::bf16_linear::Problem;

template <int R, int T>
K3_INLINE void tile(const Problem& p, size_t row, size_t token) {
  const size_t columns = p.columns;
  const uint8_t* w[R];
  const float* x[T];
  for (int r = 0; r < R; ++r) w[r] = p.weights + 2 * columns * (row + (size_t)r);
  for (int t = 0; t < T; ++t) x[t] = p.x + columns * (token + (size_t)t);
  f32x16 acc[R][T];
  for (int r = 0; r < R; ++r)
    for (int t = 0; t < T; ++t) acc[r][t] = zero();

  size_t c = 0;
  for (; c + 16 <= columns; c += 16) {
    f32x16 wr[R];
    for (int r = 0; r < R; ++r) wr[r] = load_bf16(w[r] + 2 * c);
    for (int t = 0; t < T; ++t) {
      const f32x16 xt = load(x[t] + c);
      for (int r = 0; r < R; ++r) acc[r][t] = fma(wr[r], xt, acc[r][t]);
    }
  }
  if (const int rest = (int)(columns - c)) {
    for (int r = 0; r < R; ++r) {
      const f32x16 wr = load_bf16_n(w[r] + 2 * c, rest);
      for (int t = 0; t < T; ++t) acc[r][t] = fma(wr, load_n(x[t] + c, rest), acc[r][t]);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int t = 0; t < T; ++t) p.out[(token + (size_t)t) * p.rows + row + (size_t)r] = sum(acc[r][t]);
}

// all tokens for rows [begin, end), R at a time
template <int R>
K3_INLINE size_t sweep(const Problem& p, size_t begin, size_t end) {
  size_t row = begin;
  for (; row + R <= end; row += R) {
    size_t token = 0;
    for (; token + kTileColumns <= p.tokens; token += kTileColumns) tile<R, kTileColumns>(p, row, token);
    for (; token < p.tokens; ++token) tile<R, 1>(p, row, token);
  }
  return row;
}

void multiply(const Problem& p, size_t row_begin, size_t row_end) {
  size_t row = row_begin;
  if (p.tokens < (size_t)kTileColumns) {
    for (; row + 4 <= row_end; row += 4)
      for (size_t token = 0; token < p.tokens; ++token) tile<4, 1>(p, row, token);
  }
  row = sweep<kTileRows>(p, row, row_end);
  sweep<1>(p, row, row_end);
}
}  // namespace

namespace k3::bf16_linear {
const Kernels K3_KERNELS = {multiply};
}
