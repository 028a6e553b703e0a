#include <k3/simd_avx512.h>
#include "vector_ops.inl"
