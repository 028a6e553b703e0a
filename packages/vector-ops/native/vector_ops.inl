#include <k3/math.h>
#include "vector_ops.h"
#include "machine.inl"
#include "norms.inl"
#include "pointwise.inl"
#include "router.inl"

namespace k3::vector_ops {
const Kernels K3_KERNELS = {rms_norm, mix, mix_weights, route, situ_glu, add_all, exp_all, sigmoid_all, tanh_all,
                            read_one, read_four, multiply_add};
}
