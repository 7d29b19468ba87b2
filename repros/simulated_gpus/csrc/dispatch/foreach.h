// Foreach operators.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

namespace sim::foreach {

// Runs a foreach operator. Unless all its tensors are on one device, the CPU's kernel calls an operator on each, on its
// own device.
void run_each(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);
// Counts a change of each tensor, unless PyTorch does not count here.
void bump_versions(at::TensorList tensors);

}  // namespace sim::foreach

namespace sim {

using foreach::bump_versions, foreach::run_each;

}  // namespace sim
