// The generator of a kernel that draws random numbers.
#pragma once

#include "torch_versions.h"

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

namespace sim::random {

// The generator that a kernel on a device tensor draws from: `generator`, or the default one of the tensor's device.
at::Generator prepare_to_draw(const at::Tensor& self, const SIM_OPTIONAL<at::Generator>& generator);

}  // namespace sim::random

namespace sim {

using random::prepare_to_draw;

}  // namespace sim
