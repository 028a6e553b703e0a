// y[t][r] = sum_c W[r][c] x[t][c] for W in MXFP4: W = code value * 2^(scale byte - 127).
// A chunk of 128 columns is 64 packed bytes, one dword of 8 codes for each of the 16 lanes: lane j takes columns
// 8j .. 8j+7 in ascending order, p = w0 x0, p = fma(w1, x1, p), ..., then acc = fma(p, scale of group j / 4, acc). The last
// chunk may have 32, 64 or 96 columns; its missing lanes add nothing. The lanes are folded by the fixed tree.
// One load thus gives every lane its codes, and x is kept in the order [chunk][n][lane] of columns 128 chunk + 8 lane + n.
// Few vectors at a time, W is decoded in registers. Where a register holds all lanes, look-ups and shifts hide behind the
// multiplications of four vectors, so many vectors go four by four; elsewhere a panel of W is decoded to first-level cache.
#include <k3/math.h>

#include "int8.inl"
#include "matmul.h"

namespace {
using namespace k3::mxfp4;

constexpr size_t kTokens = 32;                       // vectors at a time: their x fits second-level cache
constexpr int kPanel = 8;                            // rows decoded together, a multiple of every kPartRows
constexpr size_t kDepth = 3;                         // chunks decoded together: the panel and a tile's x fit the first cache
constexpr size_t kFew = 4;                           // vectors of a tile that decodes W in registers
constexpr int kRows = kPartColumns * kPartLanes >= 96 ? 4 : 1;  // rows at a time for one vector

// One chunk of one row. `groups` is the compile-time 4 but for the last, short chunk.
struct Chunk {
  const uint8_t *codes, *scales;
};
K3_INLINE Chunk chunk_at(const Packed& w, size_t row, size_t chunk) {
  return {w.codes + row * (w.columns / 2) + chunk * 64, w.scales + row * (w.columns / kGroup) + chunk * 4};
}
K3_INLINE e2m1x8 codes_of(const Chunk& c, int groups) {
  return unpack_e2m1(groups == 4 ? load_u32(c.codes) : load_u32_n(c.codes, 4 * groups));
}
K3_INLINE f32x16 scale_of(const Chunk& c, int groups) { return groups == 4 ? e8m0x4(c.scales) : e8m0_n(c.scales, groups); }

K3_INLINE int last_groups(const Packed& w) { return (int)(w.columns % kChunk / kGroup); }

// One chunk of R rows times T vectors, all in registers.
template <int R, int T>
K3_INLINE void add_chunk(const Packed& w, size_t row, size_t chunk, int groups, const float* const* x, f32x16 (*acc)[T]) {
  Chunk c[R];
  e2m1x8 codes[R];
  f32x16 p[R][T];
  for (int r = 0; r < R; ++r) {
    c[r] = chunk_at(w, row + (size_t)r, chunk);
    // to second-level cache: x, these rows and the next ones together would fill the first
    __builtin_prefetch(c[r].codes + R * (w.columns / 2), 0, 2);
    codes[r] = codes_of(c[r], groups);
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
    const f32x16 scale = scale_of(c[r], groups);
    for (int t = 0; t < T; ++t) acc[r][t] = fma(p[r][t], scale, acc[r][t]);
  }
}

template <int R, int T>
K3_INLINE void rows_times_few(const Packed& w, size_t row, const float* const* vectors, float (*y)[kRowBlock]) {
  const float* x[T];
  for (int t = 0; t < T; ++t) x[t] = vectors[t];
  f32x16 acc[R][T];
  for (int r = 0; r < R; ++r)
    for (int t = 0; t < T; ++t) acc[r][t] = zero();
  const size_t whole = w.columns / kChunk;
  for (size_t c = 0; c < whole; ++c) add_chunk<R, T>(w, row, c, 4, x, acc);
  if (const int groups = last_groups(w)) add_chunk<R, T>(w, row, whole, groups, x, acc);
  for (int r = 0; r < R; ++r)
    for (int t = 0; t < T; ++t) y[t][r] = sum(acc[r][t]);
}

// rows [row, row + rows) times T vectors, T <= kFew
template <int T>
static void few(const Packed& w, size_t row, int rows, const float* const* x, float (*y)[kRowBlock]) {
  constexpr int R = T == 1 ? kRows : kRows / 2 ? kRows / 2 : 1;
  int r = 0;
  for (; r + R <= rows; r += R) rows_times_few<R, T>(w, row + (size_t)r, x, (float (*)[kRowBlock])(y[0] + r));
  if constexpr (R > 1)
    for (; r < rows; ++r) rows_times_few<1, T>(w, row + (size_t)r, x, (float (*)[kRowBlock])(y[0] + r));
}

// the same for at most T vectors
template <int T>
K3_INLINE void few_of(const Packed& w, size_t row, int rows, const Vectors& x, float (*y)[kRowBlock]) {
  if constexpr (T > 1) {
    if (x.count < (size_t)T) return few_of<T - 1>(w, row, rows, x, y);
  }
  few<T>(w, row, rows, x.rows, y);
}

// Up to kDepth chunks of kPanel rows, decoded.
struct Panel {
  struct {
    float w[kPanel][kChunk], scale[kPanel][16];  // w[r]: [n][lane]
  } chunks[kDepth];
  size_t count;
};
K3_INLINE void decode(const Packed& w, size_t row, int rows, size_t chunk, int groups, Panel* panel) {
  auto& out = panel->chunks[panel->count++];
  for (int r = 0; r < rows; ++r) {
    const Chunk c = chunk_at(w, row + (size_t)r, chunk);
    const e2m1x8 codes = codes_of(c, groups);
    K3_UNROLL
    for (int n = 0; n < 8; ++n) store(out.w[r] + 16 * n, e2m1(codes, n));
    store(out.scale[r], scale_of(c, groups));
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

// up to kPanel rows times up to kTokens vectors: y[t][r]
void panel_times_many(const Packed& w, size_t row, int rows, const Vectors& x, float (*y)[kRowBlock]) {
  alignas(64) Sums sums;
  alignas(64) Panel panel;
  for (int r = 0; r < kPanel; ++r) memset(sums[r], 0, x.count * sizeof sums[r][0]);
  if (rows < kPanel) memset(&panel, 0, sizeof panel);
  const size_t whole = w.columns / kChunk, chunks = (w.columns + kChunk - 1) / kChunk;
  for (size_t first = 0; first < chunks; first += kDepth) {
    panel.count = 0;
    for (size_t c = first; c < chunks && c < first + kDepth; ++c) {
      if (c < whole) decode(w, row, rows, c, 4, &panel);
      else decode(w, row, rows, c, last_groups(w), &panel);
    }
    add_panel(panel, x, first * kChunk, sums);
  }
  for (size_t t = 0; t < x.count; ++t)
    for (int r = 0; r < rows; ++r) y[t][r] = sum(load(sums[r][t]));
}

// up to kRowBlock rows times up to kTokens vectors: y[t][r]
K3_INLINE void block(const Packed& w, size_t row, int rows, const Vectors& x, float (*y)[kRowBlock]) {
  if (kPartLanes == 16 || x.count <= kFew) {
    const size_t tiles = (x.count + kFew - 1) / kFew;
    for (size_t i = 0; i < tiles; ++i) {
      const size_t first = x.count * i / tiles, end = x.count * (i + 1) / tiles;
      few_of<(int)kFew>(w, row, rows, {x.rows + first, end - first}, y + first);
    }
    return;
  }
  for (int r = 0; r < rows; r += kPanel)
    panel_times_many(w, row + (size_t)r, rows - r < kPanel ? rows - r : kPanel, x, (float (*)[kRowBlock])(y[0] + r));
}

K3_INLINE Vectors from(const Vectors& x, size_t first) {
  const size_t rest = x.count - first;
  return {x.rows + first, rest < kTokens ? rest : kTokens};
}

// some vectors at a time, all rows before the next ones: their x stays in second-level cache
void multiply(const Packed& w, const Vectors& x, float* out, size_t stride, size_t begin, size_t end) {
  float y[kTokens][kRowBlock];
  for (size_t first = 0; first < x.count; first += kTokens) {
    const Vectors some = from(x, first);
    for (size_t row = begin; row < end; row += kRowBlock) {
      const int rows = end - row < kRowBlock ? (int)(end - row) : (int)kRowBlock;
      block(w, row, rows, some, y);
      for (size_t t = 0; t < some.count; ++t)
        memcpy(out + (first + t) * stride + row, y[t], sizeof(float) * (size_t)rows);
    }
  }
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
  for (size_t first = 0; first < x.count; first += kTokens) {
    const Vectors some = from(x, first);
    for (size_t row = begin; row < end; row += kRowBlock) {
      block(w1, row, kRowBlock, some, gate);
      block(w3, row, kRowBlock, some, up);
      for (size_t t = 0; t < some.count; ++t)
        store_arranged(hidden + (first + t) * stride, row, situ(load(gate[t]), load(up[t]), s.beta, s.linear_beta));
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
