// y = W x for bf16 W: the kernel table, one per instruction set.
#pragma once
#include <k3/isa_table.h>
#include <stddef.h>
#include <stdint.h>

namespace k3::bf16_linear {

struct Problem {
  const uint8_t* weights;  // bf16 [rows, columns], any alignment
  const float* x;          // [tokens, columns]
  float* out;              // [tokens, rows]
  size_t rows, columns, tokens;
};

struct Kernels {
  void (*multiply)(const Problem& p, size_t row_begin, size_t row_end);
};

K3_ISA_TABLE(Kernels, kernels);

}  // namespace k3::bf16_linear
