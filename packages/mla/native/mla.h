// Gated multi-head latent attention: shapes, and the kernel table, one per instruction set. Letters of
// docs/spec/SPEC.md section 7.
#pragma once
#include <k3/isa_table.h>
#include <stddef.h>
#include <stdint.h>

namespace k3::mla {

struct Shape {
  size_t heads, nope, shared, value, latent;
  float norm_eps, score_scale;  // (nope + shared)^-0.5
  K3_KERNEL_INLINE size_t row() const { return latent + shared; }  // numbers of one cached position
  K3_KERNEL_INLINE size_t query() const { return heads * (nope + shared); }
  K3_KERNEL_INLINE size_t width() const { return heads * value; }
};

// kv_up: bf16 [heads][nope keys, then value][latent], any alignment
struct Call {
  const uint8_t* kv_up;
  const float* queries;  // [tokens][heads][nope, then shared]
  const float* gate;     // [tokens][heads * value]
  const float* cache;    // [positions][latent, then shared]; the new tokens' rows are already there
  size_t cached;         // positions before the first of `tokens`
  size_t tokens;
  float* out;            // [tokens][heads * value]
};

// Positions are taken in blocks that start at multiples of this; part of the floating-point contract.
constexpr size_t kBlock = 64;
// Tokens whose queries are prepared together, so that a head's slice of kv_up is read once for all of them.
constexpr size_t kTokenTile = 8;
K3_KERNEL_INLINE size_t tile_tokens(size_t tokens) { return tokens < kTokenTile ? tokens : kTokenTile; }

struct Kernels {
  // Cache rows of new tokens from kv [tokens][latent, then shared]: norm of the latent part, shared part as it is.
  void (*append)(const Shape&, const float* kv, const float* gain, float* rows, size_t tokens);
  // Heads [begin, end) of all tokens. scratch: (end - begin) * head_floats(shape, tokens)
  void (*attend)(const Shape&, const Call&, size_t begin, size_t end, float* scratch);
};

// What a thread works in for each of its heads, whole cache lines: queries and summed latents of a tile of tokens, scores
// of a block, and the state of the softmax.
K3_KERNEL_INLINE size_t head_floats(const Shape& s, size_t tokens) {
  return (tile_tokens(tokens) * (s.row() + s.latent) + kBlock + 3 + 15) / 16 * 16;
}

K3_ISA_TABLE(Kernels, kernels);

}  // namespace k3::mla
