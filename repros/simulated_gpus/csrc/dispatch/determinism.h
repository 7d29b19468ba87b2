// `torch.use_deterministic_algorithms`.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

namespace sim::determinism {

// Raises or warns as CUDA does, if its kernel for this call is nondeterministic and the program requires deterministic
// ones.
void alert_nondeterministic(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments);
// Fills new memory as PyTorch does in deterministic mode; returns the tensor.
at::Tensor fill_new_memory(at::Tensor tensor);

}  // namespace sim::determinism

namespace sim {

using determinism::alert_nondeterministic, determinism::fill_new_memory;

}  // namespace sim
