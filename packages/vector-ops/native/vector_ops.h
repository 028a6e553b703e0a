// The per-token equations that are neither a matrix product nor attention: the kernel table, one per instruction set.
#pragma once
#include <k3/isa_table.h>
#include <stddef.h>
#include <stdint.h>

namespace k3::vector_ops {

struct Norm {
  const float* x;       // [tokens, dim]
  const float* weight;  // [dim]
  float* out;           // [tokens, dim], may be x
  size_t dim;
  float eps;
};

constexpr size_t kMaxSources = 64;  // K3 mixes at most 9: 8 blocks and the prefix

struct Mix {
  const float* sources[kMaxSources];  // each [tokens, dim], oldest first
  size_t count;
  const float* key;  // [dim], gain times projection
  float* out;        // [tokens, dim], may be any of the sources; or the softmax weights [tokens, count]
  size_t dim;
  float eps;
};

constexpr size_t kMaxSelected = 256;  // K3 selects 16

struct Route {
  const float* logits;  // [tokens, experts]
  const float* bias;    // [experts]
  int32_t* indices;     // [tokens, k]
  float* weights;       // [tokens, k]
  size_t experts, k;
  bool renormalize;
  float factor;
};

constexpr uint64_t kAllFinite = UINT64_MAX;

struct Kernels {
  void (*rms_norm)(const Norm& p, size_t token_begin, size_t token_end);
  void (*mix)(const Mix& p, size_t token_begin, size_t token_end);
  void (*mix_weights)(const Mix& p, size_t token_begin, size_t token_end);
  // position token * experts + expert of the first number that is not finite, or kAllFinite
  uint64_t (*route)(const Route& p, size_t token_begin, size_t token_end);
  // elementwise over [begin, end); out may be an input
  void (*situ_glu)(const float* gate, const float* up, float beta, float linear_beta, float* out, size_t begin, size_t end);
  void (*add)(const float* a, const float* b, float* out, size_t begin, size_t end);
  void (*exp)(const float* x, float* out, size_t begin, size_t end);
  void (*sigmoid)(const float* x, float* out, size_t begin, size_t end);
  void (*tanh)(const float* x, float* out, size_t begin, size_t end);
  // the sum of words[begin .. end), whole groups of 64, read as one stream or as four side by side; and what `steps` rounds
  // of multiply-adds come to
  uint32_t (*read_one)(const uint32_t* words, size_t begin, size_t end);
  uint32_t (*read_four)(const uint32_t* words, size_t begin, size_t end);
  float (*multiply_add)(size_t steps, float factor, uint64_t* operations);
};

K3_ISA_TABLE(Kernels, kernels);

}  // namespace k3::vector_ops
