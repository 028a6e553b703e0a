// Products with MXFP4 matrices straight from the packed bytes: the kernel table, one per instruction set.
#pragma once
#include <k3/isa_table.h>
#include <stddef.h>
#include <stdint.h>

namespace k3::mxfp4 {

enum : size_t { kGroup = 32, kChunk = 128 };

// W [rows, columns], row-major: two codes a byte, one scale byte for 32 columns. Any alignment.
struct Packed {
  const uint8_t* codes;   // [rows, columns / 2]
  const uint8_t* scales;  // [rows, columns / 32], none of them 255
  size_t columns;         // a multiple of 32
};

// Arranged vectors (see matmul.inl and int8.inl), one pointer each.
struct Vectors {
  const float* const* rows;
  size_t count;
};

struct Situ {
  float beta, linear_beta;
};

// Products with vectors in one form: f32, or 8 bits with a scale for 32 columns.
struct Products {
  size_t chunk_floats;  // memory of a chunk of an arranged vector
  // x [columns] to the form of this product: out [whole chunks], zero beyond the columns.
  void (*arrange)(const float* x, float* out, size_t columns);
  // out[t * stride + r] = sum_c W[r][c] x[t][c] for rows [begin, end).
  void (*multiply)(const Packed& w, const Vectors& x, float* out, size_t stride, size_t begin, size_t end);
  // hidden[t * stride + place of r] = situ(w1_r x[t], w3_r x[t]) for rows [begin, end), multiples of kGroup, arranged as
  // the next product needs it.
  void (*gate_up)(const Packed& w1, const Packed& w3, const Vectors& x, Situ situ, float* hidden, size_t stride,
                  size_t begin, size_t end);
};

struct Kernels {
  Products exact, int8;
  // out[c] = sum_i weights[i] rows[pair_of[i]][c] for columns [begin, end), multiples of 16, of rows `width` wide.
  void (*combine)(const float* rows, const int32_t* pair_of, const float* weights, size_t count, float* out, size_t width,
                  size_t begin, size_t end);
};

K3_ISA_TABLE(Kernels, kernels);
#if defined(__x86_64__)
extern const Products int8_vnni;  // instead of the int8 of kernels_avx512 where the CPU has AVX-512 VNNI; the same bits
#endif

}  // namespace k3::mxfp4
