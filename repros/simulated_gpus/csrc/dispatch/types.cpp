// Which element types an operator has on CUDA.
//
// Contract held: what CUDA's own code refuses for the samples of torch.testing's list of operators, as
// tools/kernel_types records it for some releases. The error is that of the AT_DISPATCH macros in ATen/native/cuda. A
// call is refused only if its type is sure: that of the first tensor, which no other tensor, number or `dtype` argument
// changes. Without elements most kernels return before they ask for the type, so such a call passes. In
// ATen/native/cuda, layer_norm_kernel.cu and group_norm_kernel.cu read weights as they read the input; group_norm.cpp
// has a check of its own before.
#include "dispatch/types.h"

#include "dispatch/kernel_types.h"
#include "torch_versions.h"

#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <unordered_map>

// AT_DISPATCH's check, of the class that it has in the release: not NotImplementedError in 2.6.0, but in 2.9.1.
#if SIM_TORCH_AT_LEAST(2, 9)
#define SIM_CHECK_DISPATCH TORCH_CHECK_NOT_IMPLEMENTED
#else
#define SIM_CHECK_DISPATCH TORCH_CHECK
#endif

namespace sim {

namespace {

const KernelTypes* find_row(const c10::FunctionSchema& schema) {
  const auto name = schema.name().substr(schema.name().find("::") + 2);
  const bool in_place = name.size() > 1 && name.back() == '_';
  const auto base = in_place ? name.substr(0, name.size() - 1) : name;
  const auto* found = std::lower_bound(
      std::begin(kKernelTypes), std::end(kKernelTypes), base,
      [](const KernelTypes& row, const std::string& wanted) { return row.name < wanted; });
  const bool is_row = schema.name().rfind("aten::", 0) == 0 && found != std::end(kKernelTypes) && found->name == base;
  return is_row && found->refused[kReleaseColumn] != 0 ? found : nullptr;
}

// What CUDA's kernel for an operator asks of its arguments.
struct Rules {
  const KernelTypes* row;  // null if it has all types of the CPU's
  bool needs_one_type;     // it reads weights in the type of the input
  bool is_absent;
};

Rules find_rules(const c10::FunctionSchema& schema) {
  const auto& name = schema.name();
  return {
      find_row(schema), name == "aten::native_layer_norm" || name == "aten::native_group_norm",
      name.rfind("quantized::", 0) == 0 && name.find("_dynamic") != std::string::npos};
}

const Rules& rules_of(const c10::FunctionSchema& schema) {
  thread_local std::unordered_map<const c10::FunctionSchema*, Rules> known;
  auto found = known.find(&schema);
  if (found == known.end()) {
    found = known.emplace(&schema, find_rules(schema)).first;
  }
  return found->second;
}

void check_one_type(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments) {
  const auto input = arguments[0].toTensor().scalar_type();
  for (size_t i = 1; i < arguments.size(); ++i) {
    const auto& name = schema.arguments()[i].name();
    if ((name == "weight" || name == "bias") && arguments[i].isTensor() && arguments[i].toTensor().defined()) {
      const auto other = arguments[i].toTensor().scalar_type();
      TORCH_CHECK(
          schema.name() != "aten::native_group_norm" || other == input || input == at::kHalf || input == at::kBFloat16,
          "mixed dtype (CPU): expect parameter to have scalar type of Float");
      TORCH_CHECK(other == input, "expected scalar type ", input, " but found ", other);
    }
  }
}

at::Tensor first_tensor(c10::ArrayRef<c10::IValue> arguments) {
  for (const auto& value : arguments) {
    if (value.isTensor() && value.toTensor().defined()) {
      return value.toTensor();
    }
    if (value.isTensorList() && !value.toTensorList().empty()) {
      return value.toTensorList().get(0);
    }
  }
  return {};
}

bool keeps_type(at::ScalarType type, const at::Tensor& other) {
  return !other.defined() || c10::promoteTypes(type, other.scalar_type()) == type;
}

// Whether an argument leaves the type of the first tensor as the one that the kernel works in.
bool keeps_type(at::ScalarType type, const c10::Argument& argument, const c10::IValue& value) {
  if (value.isTensor()) {
    return keeps_type(type, value.toTensor());
  }
  if (value.isTensorList()) {
    const auto list = value.toTensorList();
    return std::all_of(list.begin(), list.end(), [&](const at::Tensor& each) { return keeps_type(type, each); });
  }
  if (value.isOptionalTensorList()) {
    return false;
  }
  if (argument.name() == "dtype") {
    return value.isNone() || value.toScalarType() == type;
  }
  if (value.isScalar() && argument.type()->kind() == c10::TypeKind::NumberType && argument.name() != "alpha" &&
      argument.name() != "beta" && argument.name() != "value") {
    return c10::promoteTypes(type, value.toScalar().type()) == type || at::isFloatingType(type) ||
        (at::isIntegralType(type, /*includeBool=*/false) && value.isInt());
  }
  return true;
}

}  // namespace

TypeSet refused_types(const c10::FunctionSchema& schema) {
  const auto* row = find_row(schema);
  return row == nullptr ? 0 : row->refused[kReleaseColumn];
}

void check_types(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments) {
  const auto& rules = rules_of(schema);
  TORCH_CHECK_NOT_IMPLEMENTED(
      !rules.is_absent, "Could not run '", schema.name(),
      "' with arguments from the 'CUDA' backend. This could be because the operator doesn't exist for this backend, or "
      "was omitted during the selective/custom build process (if using custom build).");
  if (rules.needs_one_type) {
    check_one_type(schema, arguments);
  }
  const auto* row = rules.row;
  if (row == nullptr) {
    return;
  }
  const auto first = first_tensor(arguments);
  if (!first.defined() || !contains(row->refused[kReleaseColumn], first.scalar_type()) || first.numel() == 0) {
    return;
  }
  const auto type = first.scalar_type();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!schema.arguments()[i].is_out() && !keeps_type(type, schema.arguments()[i], arguments[i])) {
      return;
    }
  }
  TORCH_CHECK(!row->kernel.empty(), "getCudnnDataTypeFromScalarType() not supported for ", c10::toString(type));
  SIM_CHECK_DISPATCH(false, '"', row->kernel, "\" not implemented for '", c10::toString(type), "'");
}

}  // namespace sim
