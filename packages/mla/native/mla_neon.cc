#include <k3/simd_neon.h>
#include <k3/math.h>
#include "mla.inl"
