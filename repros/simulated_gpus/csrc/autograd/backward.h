// Which thread computes a backward pass.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace sim::backward {

// Whether a backward pass from these tensors can run in this thread, unnoticed by the program.
bool can_run_in_callers_thread(const std::vector<at::Tensor>& roots);
// A tensor that is saved for backward may call Python from now on, when it is read.
void expect_saved_tensor_hooks();

}  // namespace sim::backward

namespace sim {

using backward::can_run_in_callers_thread, backward::expect_saved_tensor_hooks;

}  // namespace sim
