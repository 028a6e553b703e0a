#include <k3/simd_neon.h>
#include "matmul.inl"
