// The placement checks inside CUDA's kernels, with their messages.
#pragma once

#include "dispatch/placement.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <string>

namespace sim::kernel_checks {

using PlacementCheck = Placement (*)(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments);
// The check in an operator's kernel, by the operator's full name; null if it has none.
PlacementCheck kernel_check(const std::string& name);

// Whether an index is a boolean mask.
bool is_mask(const at::Tensor& tensor);
// Whether an indexed assignment is done by masked_fill_: one mask, and one number on the host.
bool is_masked_fill(const at::Tensor& self, const c10::IValue& indices, const at::Tensor& value);

}  // namespace sim::kernel_checks

namespace sim {

using kernel_checks::is_mask, kernel_checks::is_masked_fill, kernel_checks::kernel_check, kernel_checks::PlacementCheck;

}  // namespace sim
