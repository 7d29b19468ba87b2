// Random generators of the devices.
#pragma once

#include "torch_versions.h"

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>
#include <c10/core/TensorImpl.h>

namespace sim {

const at::Generator& default_generator(c10::DeviceIndex index);
at::Generator make_generator(c10::DeviceIndex index);
// Remembers what a state from another process tells of its place, before somebody copies the visible bytes.
void learn_state(const c10::TensorImpl& state);
// The host generator underneath `given` (if undefined: underneath the default generator of `index`).
at::Generator host_generator(const SIM_OPTIONAL<at::Generator>& given, c10::DeviceIndex index);

}  // namespace sim
