#include <k3/simd_avx2.h>
#include "matmul.inl"
