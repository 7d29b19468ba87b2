// Which operators have a kernel here before PyTorch's composite one.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/FunctionRef.h>

#include <string>

namespace sim {

// Calls `each` with every operator of ATen's and its full name.
void for_each_operator(c10::function_ref<void(const c10::OperatorHandle& op, const std::string& name)> each);
// A structured operator whose placement check is part of its shape check: PyTorch raises the error, if there is one.
void run_structured(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

}  // namespace sim
