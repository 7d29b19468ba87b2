// Foreach operators.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

namespace sim::foreach {

// Runs a foreach operator. Unless all tensors are on one device, the CPU's kernel calls an operator for each tensor, on
// that tensor's device.
void run_each(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);
// Increments the version counter of each tensor, unless PyTorch has version counting disabled.
void bump_versions(at::TensorList tensors);

}  // namespace sim::foreach

namespace sim {

using foreach::bump_versions, foreach::run_each;

}  // namespace sim
