// Products with MXFP4 matrices straight from the packed bytes: the kernel table, one per instruction set.
#pragma once
#include <k3/isa_table.h>
#include <stddef.h>
#include <stdint.h>

namespace k3::mxfp4 {

enum : size_t { kGroup = 32, kChunk = 128, kRowBlock = 16 };

// W [rows, columns], row-major: two codes a byte, one scale byte for 32 columns. Any alignment.
struct Packed {
  const uint8_t* codes;   // [rows, columns / 2]
  const uint8_t* scales;  // [rows, columns / 32], none of them 255
  size_t columns;         // a multiple of 32
};

// Vectors in the order of the lanes (see matmul.inl), one pointer each.
struct Vectors {
  const float* const* rows;
  size_t count;
};

struct Situ {
  float beta, linear_beta;
};

struct Kernels {
  // x [columns] to the order of the lanes: out [columns rounded up to whole chunks], zero beyond the columns.
  void (*arrange)(const float* x, float* out, size_t columns);
  // out[t * stride + r] = sum_c W[r][c] x[t][c] for rows [begin, end).
  void (*multiply)(const Packed& w, const Vectors& x, float* out, size_t stride, size_t begin, size_t end);
  // hidden[t * stride + place of r] = situ(w1_r x[t], w3_r x[t]) for rows [begin, end), multiples of kRowBlock, arranged
  // as the next product needs it.
  void (*gate_up)(const Packed& w1, const Packed& w3, const Vectors& x, Situ situ, float* hidden, size_t stride,
                  size_t begin, size_t end);
  // out[c] = sum_i weights[i] rows[pair_of[i]][c] for columns [begin, end), multiples of 16, of rows `width` wide.
  void (*combine)(const float* rows, const int32_t* pair_of, const float* weights, size_t count, float* out, size_t width,
                  size_t begin, size_t end);
};

K3_ISA_TABLE(Kernels, kernels);

}  // namespace k3::mxfp4
