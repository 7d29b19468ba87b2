// The devices that an operator's arguments may be on, by CUDA's rules.
#pragma once

#include "torch_versions.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>
#include <c10/util/FunctionRef.h>

namespace sim::placement {

using Placement = SIM_OPTIONAL<c10::Device>;
// Throws where CUDA would. Otherwise returns the device the operator runs on, if a tensor or a device argument
// determines it.
Placement check_placement(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments);
// The check that torchgen generates, for all arguments but the named one.
Placement check_all_but(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments, const char* name);
// The same check with another kernel's name in the message, which CUDA calls instead.
Placement check_as(
    const char* method, const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments,
    const char* except = "");
// TensorIterator's check, of all tensors except those that the kernel copies to the device first, or only reads.
using IsExempt = c10::function_ref<bool(const c10::Argument& argument, const at::Tensor& tensor)>;
Placement check_iterator(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments, IsExempt is_exempt);
bool is_written(const c10::Argument& argument);
// Whether CUDA leaves the check to the operator's own kernel.
bool kernel_checks_placement(const c10::FunctionSchema& schema);
// Whether an operator has kernels for the CPU and CUDA, and a composite one for other devices.
bool has_composite_for_others(const c10::FunctionSchema& schema);

}  // namespace sim::placement

namespace sim {

using placement::check_all_but, placement::check_as, placement::check_iterator, placement::check_placement,
    placement::has_composite_for_others, placement::is_written, placement::IsExempt, placement::kernel_checks_placement,
    placement::Placement;

}  // namespace sim
