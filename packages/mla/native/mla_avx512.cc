#include <k3/simd_avx512.h>
#include <k3/math.h>
#include "mla.inl"
