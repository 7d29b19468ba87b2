// The boxed kernels of `_softmax`, `_log_softmax` and their backward.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace sim::softmax {

void run_softmax(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);
void run_softmax_backward(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

}  // namespace sim::softmax

namespace sim {

using softmax::run_softmax, softmax::run_softmax_backward;

}  // namespace sim
