// Bytes of synthetic tensors: the kernel table, one per instruction set.
#pragma once
#include <k3/isa_table.h>
#include <stddef.h>
#include <stdint.h>

namespace k3::synth {

enum Kind : uint32_t { kRaw, kScale, kAffineBf16, kAffineF32 };

// One tensor: its 64-bit key in two halves, and the rule that turns words into bytes.
struct Stream {
  uint32_t k0, k1;
  Kind kind;
  int32_t offset, slope;  // affine: I = offset + slope * (2h - 65535); scale: the lowest byte is `offset`
  float unit;             // affine: v = I * unit, a power of two
  uint64_t live;          // affine f32: elements from here on are +0
};

struct Kernels {
  // bytes 4 * first_word and on of the tensor, `bytes` of them
  void (*fill)(const Stream& stream, uint64_t first_word, uint8_t* out, size_t bytes);
};

K3_ISA_TABLE(Kernels, kernels);

}  // namespace k3::synth
