// CUDA's kernels that have their own check of placement, and its message.
#pragma once

#include "dispatch/placement.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <string>

namespace sim::kernel_checks {

using PlacementCheck = Placement (*)(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments);
// The check of an operator with its own, by full name; null for other operators.
PlacementCheck kernel_check(const std::string& name);

// Whether an index is a mask, whose true elements are chosen.
bool is_mask(const at::Tensor& tensor);
// Whether masked_fill_, which reads the value, does an assignment by index: one mask, and one number of the host.
bool is_masked_fill(const at::Tensor& self, const c10::IValue& indices, const at::Tensor& value);

}  // namespace sim::kernel_checks

namespace sim {

using kernel_checks::is_mask, kernel_checks::is_masked_fill, kernel_checks::kernel_check, kernel_checks::PlacementCheck;

}  // namespace sim
