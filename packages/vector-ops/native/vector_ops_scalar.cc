#include <k3/simd_scalar.h>
#include "vector_ops.inl"
