#include <k3/simd_avx512.h>
#include "matmul.inl"
