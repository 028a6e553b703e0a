// Kimi Delta Attention: shapes, and the kernel table, one per instruction set. Letters of docs/spec/SPEC.md section 6.
#pragma once
#include <k3/isa_table.h>
#include <stddef.h>
#include <stdint.h>

namespace k3::kda {

struct Shape {
  size_t heads, dim, taps;  // dim: keys = values of one head
  float lower_bound;        // smallest log decay, negative
  float norm_eps, l2_eps;
  float query_scale;        // dim^-0.5
  K3_KERNEL_INLINE size_t width() const { return heads * dim; }
};

// Parameters of one layer. conv: [3][taps][width], tap-major so that channels are contiguous; q, k, v in this order.
struct Parameters {
  const float *conv, *exp_a, *dt_bias, *o_norm;  // exp_a: exp(A_log) [heads]; dt_bias [width]; o_norm [dim]
};

// One call's rows, [tokens, width] each; beta [tokens, heads].
struct Rows {
  const float *q, *k, *v, *decay, *beta, *gate;
  float* out;
  size_t tokens;
};

// recurrence: [heads][dim keys][dim values]; tails: [3][taps-1][width], oldest first.
struct State {
  float *recurrence, *tails;
};

// Pairs of a head and a token that are prepared together: of one token many heads, so that its streams through memory are
// long; of a prompt one head and kTokens tokens, so that S comes from second-level cache once for all of these.
constexpr size_t kPrepared = 16, kTokens = 16;
// What a thread works in, whole cache lines.
K3_KERNEL_INLINE size_t scratch_floats(size_t dim) { return (kPrepared * (4 * dim + 1) + 32 * dim + 15) / 16 * 16; }

struct Kernels {
  // Everything of heads [begin, end) for all tokens. scratch: scratch_floats(dim)
  void (*heads)(const Shape&, const Parameters&, const Rows&, const State&, size_t begin, size_t end, float* scratch);
  // y[t][c] = silu(sum over taps), channels [begin, end); weight: [taps][width]; tail [taps-1][width] is advanced.
  void (*short_conv)(const float* x, float* tail, const float* weight, float* y, size_t tokens, size_t width, size_t taps,
                     size_t begin, size_t end);
  // x / sqrt(sum x^2 + eps) * scale for each of `rows` rows
  void (*l2_normalize)(const float* x, float* y, size_t rows, size_t dim, float eps, float scale);
  // log decay g = lower * sigmoid(exp_a[h] (z + dt_bias)) for `tokens` rows of [heads, dim]
  void (*decay_gate)(const Shape&, const Parameters&, const float* z, float* g, size_t tokens);
  // The delta rule of heads [begin, end): rows.decay is the log decay, q and k are normalised, beta is in (0, 1).
  // scratch: scratch_floats(dim)
  void (*recurrence)(const Shape&, const Rows&, float* state, size_t begin, size_t end, float* scratch);
  void (*exp)(const float* x, float* y, size_t n);
};

K3_ISA_TABLE(Kernels, kernels);

}  // namespace k3::kda
