#include <k3/simd_avx2.h>
#include <k3/math.h>
#include "mla.inl"
