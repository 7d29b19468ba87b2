// Which thread computes a backward pass.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace sim::backward {

// Whether a backward pass from these tensors can run in this thread without an effect on the program.
bool can_run_in_callers_thread(const std::vector<at::Tensor>& roots);
// Notes that reading a tensor saved for backward may call Python from now on.
void expect_saved_tensor_hooks();

}  // namespace sim::backward

namespace sim {

using backward::can_run_in_callers_thread, backward::expect_saved_tensor_hooks;

}  // namespace sim
