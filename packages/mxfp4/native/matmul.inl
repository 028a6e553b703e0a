// y[t][r] = sum_c W[r][c] x[t][c] for W in MXFP4: W = code value * 2^(scale byte - 127).
// A chunk of 128 columns is 64 packed bytes, one dword of 8 codes for each of the 16 lanes: lane j takes columns
// 8j .. 8j+7 in ascending order, p = w0 x0, p = fma(w1, x1, p), ..., then acc = fma(p, scale of group j / 4, acc). The last
// chunk may have 32, 64 or 96 columns; its missing lanes add nothing. The lanes are folded by the fixed tree.
// One load thus gives every lane its codes, and x is kept in the order [chunk][n][lane] of columns 128 chunk + 8 lane + n.
// Few vectors at a time, W is decoded in registers. Where a register holds all lanes, that hides behind the multiplications
// of four vectors, so many vectors go four by four; elsewhere a panel of W is decoded to first-level cache.
// Passes: W once from memory for up to kTokens vectors, then from second-level cache.
#include <k3/math.h>

#include "int8.inl"

namespace {
using namespace k3::mxfp4;

constexpr size_t kTokens = 32;  // vectors at a time: their x fits second-level cache
constexpr int kPanel = 8;       // rows decoded together, a multiple of every kPartRows
constexpr size_t kDepth = 3;    // chunks decoded together: the panel and a tile's x fit the first cache
constexpr size_t kFew = 4;      // vectors of a tile that decodes W in registers
constexpr size_t kRows = kPartColumns * kPartLanes >= 96 ? 4 : 1;  // rows of a tile

template <bool kLast>
K3_INLINE e2m1x8 codes_of(const Chunk& c, int groups) {
  if constexpr (!kLast) return unpack_e2m1_at(c.codes);
  return unpack_e2m1(groups == 4 ? load_u32(c.codes) : load_u32_n(c.codes, 4 * groups));
}
template <bool kLast>
K3_INLINE f32x16 scale_of(const Chunk& c, int groups) {
  return !kLast || groups == 4 ? e8m0x4(c.scales) : e8m0_n(c.scales, groups);
}

// One chunk of R rows times T vectors, all in registers.
template <int R, int T, bool kLast>
K3_INLINE void add_chunk(const Packed& w, Rows rows, size_t chunk, const float* const* x, f32x16 (*acc)[T]) {
  const int groups = groups_of(w, chunk);
  Chunk c[R];
  e2m1x8 codes[R];
  f32x16 p[R][T];
  for (int r = 0; r < R; ++r) {
    c[r] = chunk_at(w, rows.first + (size_t)r * rows.apart, chunk);
    fetch_ahead(c[r]);
    codes[r] = codes_of<kLast>(c[r], groups);
  }
  K3_UNROLL
  for (int n = 0; n < 8; ++n)
    for (int r = 0; r < R; ++r) {
      const f32x16 weight = e2m1(codes[r], n);
      for (int t = 0; t < T; ++t) {
        const f32x16 xs = load(x[t] + chunk * kChunk + 16 * n);
        p[r][t] = n == 0 ? mul(weight, xs) : fma(weight, xs, p[r][t]);
      }
    }
  for (int r = 0; r < R; ++r) {
    const f32x16 scale = scale_of<kLast>(c[r], groups);
    for (int t = 0; t < T; ++t) acc[r][t] = fma(p[r][t], scale, acc[r][t]);
  }
}

// y[t * stride + r * apart]
template <int R, int T>
K3_INLINE void rows_times_few(const Packed& w, Rows rows, const float* const* vectors, float* y, size_t stride) {
  const float* x[T];
  for (int t = 0; t < T; ++t) x[t] = vectors[t];
  f32x16 acc[R][T];
  for (int r = 0; r < R; ++r)
    for (int t = 0; t < T; ++t) acc[r][t] = zero();
  const size_t chunks = chunks_of(w);
  for (size_t c = 0; c + 1 < chunks; ++c) add_chunk<R, T, false>(w, rows, c, x, acc);
  if (chunks) add_chunk<R, T, true>(w, rows, chunks - 1, x, acc);
  for (int r = 0; r < R; ++r)
    for (int t = 0; t < T; ++t) y[(size_t)t * stride + (size_t)r * rows.apart] = sum(acc[r][t]);
}

// y[t * stride + r - begin] for rows [begin, end) and T vectors, T <= kFew
template <int T>
static void few(const Packed& w, size_t begin, size_t end, const float* const* x, float* y, size_t stride) {
  const size_t apart = (end - begin) / kRows;
  for (size_t i = 0; i < apart; ++i) rows_times_few<kRows, T>(w, {begin + i, apart}, x, y + i, stride);
  if constexpr (kRows > 1)
    for (size_t i = kRows * apart; i < end - begin; ++i) rows_times_few<1, T>(w, {begin + i, 0}, x, y + i, stride);
}

// the same for at most T vectors
template <int T>
K3_INLINE void few_of(const Packed& w, size_t begin, size_t end, const Vectors& x, float* y, size_t stride) {
  if constexpr (T > 1) {
    if (x.count < (size_t)T) return few_of<T - 1>(w, begin, end, x, y, stride);
  }
  few<T>(w, begin, end, x.rows, y, stride);
}

// Up to kDepth chunks of kPanel rows, decoded.
struct Panel {
  struct {
    float w[kPanel][kChunk], scale[kPanel][16];  // w[r]: [n][lane]
  } chunks[kDepth];
  size_t count;
};
template <bool kLast>
K3_INLINE void decode(const Packed& w, size_t row, int rows, size_t chunk, Panel* panel) {
  const int groups = groups_of(w, chunk);
  auto& out = panel->chunks[panel->count++];
  for (int r = 0; r < rows; ++r) {
    const Chunk c = chunk_at(w, row + (size_t)r, chunk);
    const e2m1x8 codes = codes_of<kLast>(c, groups);
    K3_UNROLL
    for (int n = 0; n < 8; ++n) store(out.w[r] + 16 * n, e2m1(codes, n));
    store(out.scale[r], scale_of<kLast>(c, groups));
  }
}

typedef float Sums[kPanel][kTokens][16];

// A panel times T vectors, a register's lanes of kPartRows x T products at a time. x: from the panel's columns on.
template <int T>
static void add_tile(const Panel& panel, const float* const* x, size_t offset, size_t token, Sums sums) {
  for (int lane = 0; lane < 16; lane += kPartLanes) {
    for (int row = 0; row < kPanel; row += kPartRows) {
      for (size_t c = 0; c < panel.count; ++c) {
        const auto& chunk = panel.chunks[c];
        f32part p[kPartRows][T];
        K3_UNROLL
        for (int n = 0; n < 8; ++n) {
          f32part xs[T];
          for (int t = 0; t < T; ++t) xs[t] = load_part(x[t] + offset + c * kChunk + 16 * n + lane);
          for (int r = 0; r < kPartRows; ++r) {
            const f32part w = load_part(chunk.w[row + r] + 16 * n + lane);
            for (int t = 0; t < T; ++t) p[r][t] = n == 0 ? mul(w, xs[t]) : fma(w, xs[t], p[r][t]);
          }
        }
        for (int r = 0; r < kPartRows; ++r) {
          const f32part scale = load_part(chunk.scale[row + r] + lane);
          for (int t = 0; t < T; ++t) {
            float* acc = sums[row + r][token + (size_t)t] + lane;
            store(acc, fma(p[r][t], scale, load_part(acc)));
          }
        }
      }
    }
  }
}

// vectors [token, token + width), at most T of them
template <int T>
K3_INLINE void add_vectors(const Panel& panel, const Vectors& x, size_t offset, size_t token, size_t width, Sums sums) {
  if constexpr (T > 1) {
    if (width < (size_t)T) return add_vectors<T - 1>(panel, x, offset, token, width, sums);
  }
  add_tile<T>(panel, x.rows + token, offset, token, sums);
}

// Tiles as equal as can be: a narrow one has too few sums to hide the latency of each.
K3_INLINE void add_panel(const Panel& panel, const Vectors& x, size_t offset, Sums sums) {
  const size_t tiles = (x.count + kPartColumns - 1) / kPartColumns;
  for (size_t i = 0; i < tiles; ++i) {
    const size_t token = x.count * i / tiles, end = x.count * (i + 1) / tiles;
    add_vectors<kPartColumns>(panel, x, offset, token, end - token, sums);
  }
}

// y[t * stride + r] for up to kPanel rows and up to kTokens vectors
void panel_times_many(const Packed& w, size_t row, int rows, const Vectors& x, float* y, size_t stride) {
  alignas(64) Sums sums;
  alignas(64) Panel panel;
  for (int r = 0; r < kPanel; ++r) memset(sums[r], 0, x.count * sizeof sums[r][0]);
  if (rows < kPanel) memset(&panel, 0, sizeof panel);
  const size_t chunks = chunks_of(w);
  for (size_t first = 0; first < chunks; first += kDepth) {
    panel.count = 0;
    for (size_t c = first; c < chunks && c < first + kDepth; ++c) {
      if (c + 1 < chunks) decode<false>(w, row, rows, c, &panel);
      else decode<true>(w, row, rows, c, &panel);
    }
    add_panel(panel, x, first * kChunk, sums);
  }
  for (size_t t = 0; t < x.count; ++t)
    for (int r = 0; r < rows; ++r) y[t * stride + (size_t)r] = sum(load(sums[r][t]));
}

// y[t * stride + r - begin] for rows [begin, end) and up to kTokens vectors
K3_INLINE void block(const Packed& w, size_t begin, size_t end, const Vectors& x, float* y, size_t stride) {
  if (kPartLanes == 16 || x.count <= kFew) {
    const size_t tiles = (x.count + kFew - 1) / kFew;
    for (size_t i = 0; i < tiles; ++i) {
      const size_t first = x.count * i / tiles, last = x.count * (i + 1) / tiles;
      few_of<(int)kFew>(w, begin, end, {x.rows + first, last - first}, y + first * stride, stride);
    }
    return;
  }
  for (size_t row = begin; row < end; row += kPanel)
    panel_times_many(w, row, end - row < kPanel ? (int)(end - row) : kPanel, x, y + (row - begin), stride);
}

K3_INLINE Vectors from(const Vectors& x, size_t first) {
  const size_t rest = x.count - first;
  return {x.rows + first, rest < kTokens ? rest : kTokens};
}

// some vectors at a time, all rows before the next ones: their x stays in second-level cache
void multiply(const Packed& w, const Vectors& x, float* out, size_t stride, size_t begin, size_t end) {
  for (size_t first = 0; first < x.count; first += kTokens)
    block(w, begin, end, from(x, first), out + first * stride + begin, stride);
}

// Row r of the hidden vector is column r of w2: place [r / 128][r % 8][r % 128 / 8].
K3_INLINE void store_arranged(float* hidden, size_t row, f32x16 values) {
  float natural[16];
  store(natural, values);
  float* out = hidden + row / kChunk * kChunk + row % kChunk / 8;
  for (int i = 0; i < 16; ++i) out[i % 8 * 16 + i / 8] = natural[i];
}

void gate_up(const Packed& w1, const Packed& w3, const Vectors& x, Situ s, float* hidden, size_t stride, size_t begin,
             size_t end) {
  float gate[kTokens][kRowBlock], up[kTokens][kRowBlock];
  const Divisor beta = divisor(s.beta), linear = divisor(s.linear_beta);
  for (size_t first = 0; first < x.count; first += kTokens) {
    const Vectors some = from(x, first);
    for (size_t row = begin; row < end; row += kRowBlock) {
      const size_t rows = end - row < kRowBlock ? end - row : kRowBlock;
      block(w1, row, row + rows, some, gate[0], kRowBlock);
      block(w3, row, row + rows, some, up[0], kRowBlock);
      for (size_t t = 0; t < some.count; ++t)
        for (size_t r = 0; r < rows; r += 16)
          store_arranged(hidden + (first + t) * stride, row + r, situ(load(gate[t] + r), load(up[t] + r), beta, linear));
    }
  }
}

void arrange(const float* x, float* out, size_t columns) {
  for (size_t c = 0; c < columns; c += kChunk, out += kChunk) {
    const size_t lanes = columns - c < kChunk ? (columns - c) / 8 : 16;
    if (lanes < 16) memset(out, 0, sizeof(float) * kChunk);
    for (size_t j = 0; j < lanes; ++j)
      for (size_t n = 0; n < 8; ++n) out[16 * n + j] = x[c + 8 * j + n];
  }
}

void combine(const float* rows, const int32_t* pair_of, const float* weights, size_t count, float* out, size_t width,
             size_t begin, size_t end) {
  for (size_t c = begin; c < end; c += 16) {
    f32x16 sum = mul(splat(weights[0]), load(rows + (size_t)pair_of[0] * width + c));
    for (size_t i = 1; i < count; ++i) sum = fma(splat(weights[i]), load(rows + (size_t)pair_of[i] * width + c), sum);
    store(out + c, sum);
  }
}
}  // namespace

namespace k3::mxfp4 {
const Kernels K3_KERNELS = {{kChunk, arrange, multiply, gate_up},
                            {sizeof(int8::XChunk) / sizeof(float), int8::arrange, int8::multiply, int8::gate_up},
                            combine};
}
