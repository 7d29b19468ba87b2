// The operators whose kernel on this device precedes PyTorch's composite kernel.
#pragma once

#include "registrar.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/FunctionRef.h>

#include <string>

namespace sim::composites {

// Calls `each` with every ATen operator and its name without namespace.
void for_each_operator(c10::function_ref<void(const c10::OperatorHandle& op, const std::string& name)> each);
// Runs a structured operator whose placement check is part of its shape check, which PyTorch does.
void run_structured(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);
// Runs PyTorch's composite kernel, which serves devices without a kernel of their own.
void run_composite(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);
// Registers a kernel for each operator that needs one before PyTorch's composite kernel and has none yet.
void register_remaining_kernels(Registrar& registrar);

}  // namespace sim::composites

namespace sim {

using composites::for_each_operator, composites::run_composite, composites::run_structured;

}  // namespace sim
