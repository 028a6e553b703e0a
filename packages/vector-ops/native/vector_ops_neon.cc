#include <k3/simd_neon.h>
#include "vector_ops.inl"
