// The fallback: runs any operator by its CPU kernel on host aliases.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace sim::fallback {

void run_on_host(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

}  // namespace sim::fallback

namespace sim {

using fallback::run_on_host;

}  // namespace sim
