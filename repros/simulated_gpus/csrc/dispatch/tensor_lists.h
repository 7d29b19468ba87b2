// Lists of optional tensors, such as the indices of `x[i, :, j]`.
#pragma once

#include "torch_versions.h"

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

namespace sim {

// Like IValue::isOptionalTensorList, which compares the types of the elements by address, and TorchScript makes a type
// of its own for each list.
inline bool is_optional_tensor_list(const c10::IValue& value) {
  if (!value.isList()) {
    return false;
  }
  const auto element = value.toList().elementType();
  return element->kind() == c10::TypeKind::OptionalType &&
      element->containedType(0)->kind() == c10::TypeKind::TensorType;
}

inline c10::List<SIM_OPTIONAL<at::Tensor>> to_optional_tensor_list(const c10::IValue& value) {
  c10::List<SIM_OPTIONAL<at::Tensor>> list;
  for (const c10::IValue& element : value.toListRef()) {
    list.push_back(element.toOptional<at::Tensor>());
  }
  return list;
}

}  // namespace sim
