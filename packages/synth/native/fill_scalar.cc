#include <k3/simd_scalar.h>
#include "fill.inl"
