// Calls a CPU kernel, in a wider element type where it lacks one that CUDA has.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace sim::upcast {

void call_host_kernel(const c10::OperatorHandle& op, c10::DispatchKey key, torch::jit::Stack* stack);

}  // namespace sim::upcast

namespace sim {

using upcast::call_host_kernel;

}  // namespace sim
