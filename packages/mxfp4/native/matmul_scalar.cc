#include <k3/simd_scalar.h>
#include "matmul.inl"
