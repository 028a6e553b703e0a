#define K3_VNNI
#include <k3/simd_avx512.h>
#include "int8.inl"

namespace k3::mxfp4 {
const Products int8_vnni = {sizeof(int8::XChunk) / sizeof(float), int8::arrange, int8::multiply, int8::gate_up};
}
