#include <k3/simd_scalar.h>
#include <k3/math.h>
#include "mla.inl"
