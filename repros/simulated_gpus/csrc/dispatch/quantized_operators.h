// The operators of quantized tensors.
#pragma once

#include "registrar.h"

namespace sim::quantized_operators {

void register_kernels(Registrar& registrar);

}  // namespace sim::quantized_operators
