// Any operator, run by its CPU kernel on host aliases.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace sim {

void run_on_host(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);
// Runs PyTorch's composite kernel, the one for devices without a kernel of their own.
void run_composite(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

}  // namespace sim
