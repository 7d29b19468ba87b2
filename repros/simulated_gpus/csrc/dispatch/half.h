// The CPU kernel itself; in a wider element type where it lacks one that CUDA has.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace sim {

void call_host_kernel(const c10::OperatorHandle& op, c10::DispatchKey key, torch::jit::Stack* stack);
// `_softmax` and `_log_softmax`; what computes their gradients.
void run_softmax(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);
void run_softmax_backward(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

}  // namespace sim
