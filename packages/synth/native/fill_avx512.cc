#include <k3/simd_avx512.h>
#include "fill.inl"
