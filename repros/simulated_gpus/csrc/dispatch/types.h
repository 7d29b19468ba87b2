// The element types of CUDA's kernels.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <cstdint>

namespace sim::types {

// A set of element types: bit n is c10::ScalarType n.
using TypeSet = uint64_t;
constexpr bool contains(TypeSet types, at::ScalarType type) {
  return ((types >> static_cast<unsigned>(type)) & 1U) != 0;
}

// The types that CUDA's kernel lacks; the CPU's may have them.
TypeSet refused_types(const c10::FunctionSchema& schema);
// Throws CUDA's error if its kernel lacks the type of a call's tensors.
void check_types(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments);

}  // namespace sim::types

namespace sim {

using types::check_types, types::contains, types::refused_types, types::TypeSet;

}  // namespace sim
