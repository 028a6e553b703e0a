// y[t][r] = sum_c W[r][c] x[t][c] with x in 8 bits: x[c] = q[c] scale of its group of 32, |q| <= 127.
// Lane j takes columns 8j .. 8j+7 of a chunk, as in matmul.inl. Twice an E2M1 value is an integer from -12 to 12, and 12 more
// is an unsigned byte, so a lane's eight products are one sum of bytes times bytes, exact in 32 bits in any order; `start`
// takes the 12 sum q away again. Then p = (float)sum * half the scale of x, acc = fma(p, scale of W, acc), and the fixed tree.
// Passes: W once for kFew vectors (from cache after the first of them), x from cache.
#include <k3/math.h>

#include "streams.inl"

namespace {
namespace int8 {
using namespace k3::mxfp4;

constexpr bool kRoomy = kPartColumns * kPartLanes >= 96;  // a register holds all lanes and the register file many sums
constexpr int kRows = kRoomy ? 4 : 1;                     // rows at a time for one vector
constexpr int kFew = kRoomy ? 8 : 4;                      // vectors that share one decoding
constexpr size_t kShared = 16;                            // rows that many vectors pass while they lie in first-level cache
constexpr size_t kTokens = 32;                            // vectors of a pass from gate and up to hidden

// 128 columns of x. Group g has the bytes 16g .. 16g+15 and the lanes 4g .. 4g+3; all zero beyond the columns.
struct XChunk {
  int8_t even[64], odd[64];  // q of columns 2i and 2i + 1
  int32_t start[16];         // -12 times the sum of a lane's eight q
  float scale[16];           // half the scale of x: the weights are doubled
};
static_assert(sizeof(XChunk) % sizeof(float) == 0);

K3_INLINE uint32_t magnitude_bits(float x) { return bits_of(x) & 0x7fffffffu; }

// 32 numbers to group g of a chunk: scale = largest magnitude / 127, q to nearest, ties to even. NaN or infinity make the
// scale NaN; numbers all below 2^-100 become zero.
K3_INLINE void quantize(const float* x, XChunk* chunk, size_t g) {
  uint32_t most = 0;
  for (int i = 0; i < 32; ++i) most = most < magnitude_bits(x[i]) ? magnitude_bits(x[i]) : most;
  const bool finite = most < 0x7f800000u, usable = finite && most >= (27u << 23);
  float largest;
  memcpy(&largest, &most, 4);
  const float inverse = usable ? 127.0f / largest : 0.0f;
  const float magic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  int8_t q[32];
  for (int i = 0; i < 32; ++i) q[i] = usable ? (int8_t)((x[i] * inverse + magic) - magic) : (int8_t)0;
  const float half = usable ? largest / 254.0f : finite ? 0.0f : __builtin_nanf("");
  for (size_t i = 0; i < 16; ++i) chunk->even[16 * g + i] = q[2 * i], chunk->odd[16 * g + i] = q[2 * i + 1];
  for (size_t j = 0; j < 4; ++j) {
    int32_t sum = 0;
    for (size_t i = 0; i < 8; ++i) sum += q[8 * j + i];
    chunk->start[4 * g + j] = -12 * sum;
    chunk->scale[4 * g + j] = half;
  }
}

K3_INLINE XChunk* chunk_of(float* vector, size_t chunk) { return (XChunk*)vector + chunk; }
K3_INLINE const XChunk* chunk_of(const float* vector, size_t chunk) { return (const XChunk*)vector + chunk; }

void arrange(const float* x, float* out, size_t columns) {
  if (columns % kChunk) memset(chunk_of(out, columns / kChunk), 0, sizeof(XChunk));
  for (size_t c = 0; c < columns; c += kGroup) quantize(x + c, chunk_of(out, c / kChunk), c % kChunk / kGroup);
}

// One chunk of R rows times T vectors. `groups` is the compile-time 4 but for the last, short chunk.
template <int R, int T>
K3_INLINE void add_chunk(const Packed& w, Rows rows, size_t chunk, int groups, const float* const* x, f32x16 (*acc)[T]) {
  u32x16 even[R], odd[R];
  f32x16 scale[R];
  for (int r = 0; r < R; ++r) {
    const Chunk c = chunk_at(w, rows.first + (size_t)r * rows.apart, chunk);
    fetch_ahead(c);
    const u32x16 words = groups == 4 ? load_u32(c.codes) : load_u32_n(c.codes, 4 * groups);
    even[r] = e2m1_bytes(words, 0);
    odd[r] = e2m1_bytes(words, 1);
    scale[r] = groups == 4 ? e8m0x4(c.scales) : e8m0_n(c.scales, groups);
  }
  for (int t = 0; t < T; ++t) {
    const XChunk* q = chunk_of(x[t], chunk);
    const u32x16 start = load_u32(q->start), q_even = load_u32(q->even), q_odd = load_u32(q->odd);
    const f32x16 half = load(q->scale);
    for (int r = 0; r < R; ++r) {
      const f32x16 p = mul(to_float(dot_bytes(start, even[r], q_even, odd[r], q_odd)), half);
      acc[r][t] = fma(p, scale[r], acc[r][t]);
    }
  }
}

// y[t * stride + r * apart] for R rows and T vectors
template <int R, int T>
static void tile(const Packed& w, Rows rows, const float* const* x, float* y, size_t stride) {
  f32x16 acc[R][T];
  for (int r = 0; r < R; ++r)
    for (int t = 0; t < T; ++t) acc[r][t] = zero();
  const size_t whole = w.columns / kChunk;
  for (size_t c = 0; c < whole; ++c) add_chunk<R, T>(w, rows, c, 4, x, acc);
  if (const int groups = (int)(w.columns % kChunk / kGroup)) add_chunk<R, T>(w, rows, whole, groups, x, acc);
  for (int r = 0; r < R; ++r)
    for (int t = 0; t < T; ++t) y[(size_t)t * stride + (size_t)r * rows.apart] = sum(acc[r][t]);
}

// y[t * stride + r - begin] for rows [begin, end) and at most T vectors
template <int T>
K3_INLINE void few(const Packed& w, size_t begin, size_t end, const Vectors& x, float* y, size_t stride) {
  if constexpr (T > 1) {
    if (x.count < (size_t)T) return few<T - 1>(w, begin, end, x, y, stride);
  }
  constexpr size_t R = T == 1 ? kRows : kRows / 2 ? kRows / 2 : 1;
  const size_t apart = (end - begin) / R;
  for (size_t i = 0; i < apart; ++i) tile<R, T>(w, {begin + i, apart}, x.rows, y + i, stride);
  if constexpr (R > 1)
    for (size_t i = R * apart; i < end - begin; ++i) tile<1, T>(w, {begin + i, 0}, x.rows, y + i, stride);
}

// the same for any number of vectors: tiles as equal as can be, of few rows at a time where there are several
K3_INLINE void block(const Packed& w, size_t begin, size_t end, const Vectors& x, float* y, size_t stride) {
  const size_t tiles = (x.count + kFew - 1) / kFew, step = tiles == 1 ? end - begin : kShared;
  for (size_t row = begin; row < end; row += step)
    for (size_t i = 0; i < tiles; ++i) {
      const size_t first = x.count * i / tiles, last = x.count * (i + 1) / tiles;
      const size_t row_end = end - row < step ? end : row + step;
      few<kFew>(w, row, row_end, {x.rows + first, last - first}, y + first * stride + (row - begin), stride);
    }
}

void multiply(const Packed& w, const Vectors& x, float* out, size_t stride, size_t begin, size_t end) {
  block(w, begin, end, x, out + begin, stride);
}

// rows in groups of 32: each is a group of the hidden vector's columns
void gate_up(const Packed& w1, const Packed& w3, const Vectors& x, Situ s, float* hidden, size_t stride, size_t begin,
             size_t end) {
  float gate[kTokens][kRowBlock], up[kTokens][kRowBlock];
  const Divisor beta = divisor(s.beta), linear = divisor(s.linear_beta);
  for (size_t first = 0; first < x.count; first += kTokens) {
    const size_t rest = x.count - first;
    const Vectors some = {x.rows + first, rest < kTokens ? rest : kTokens};
    for (size_t row = begin; row < end; row += kRowBlock) {
      const size_t rows = end - row < kRowBlock ? end - row : kRowBlock;
      block(w1, row, row + rows, some, gate[0], kRowBlock);
      block(w3, row, row + rows, some, up[0], kRowBlock);
      for (size_t t = 0; t < some.count; ++t) {
        for (size_t r = 0; r < rows; r += 16)
          store(gate[t] + r, situ(load(gate[t] + r), load(up[t] + r), beta, linear));
        for (size_t r = row; r < row + rows; r += kGroup)
          quantize(gate[t] + (r - row), chunk_of(hidden + (first + t) * stride, r / kChunk), r % kChunk / kGroup);
      }
    }
  }
}
}  // namespace int8
}  // namespace
