// The number format itself, one value at a time: E2M1 codes, two a byte, low nibble first, with one E8M0 scale for 32.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace k3::mxfp4 {

// out[i] = value of code i * 2^(scale of group i / 32 - 127), as IEEE binary32 has it.
void decode(const uint8_t* codes, const uint8_t* scales, size_t groups, float* out);

// The inverse with rounding. Returns the index of the first value that is NaN or infinite, -1 when there is none.
int64_t encode(const float* values, size_t groups, uint8_t* codes, uint8_t* scales);

}  // namespace k3::mxfp4
