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
#include "dispatch/operator_cache.h"
#include "torch_versions.h"

#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <unordered_set>

// AT_DISPATCH's check, of the class that it has in the release: not NotImplementedError in 2.6.0, but in 2.9.1.
#if SIM_TORCH_AT_LEAST(2, 9)
#define SIM_CHECK_DISPATCH TORCH_CHECK_NOT_IMPLEMENTED
#else
#define SIM_CHECK_DISPATCH TORCH_CHECK
#endif

namespace sim::types {

namespace {

// The operator's name without namespace, and without the underscore of the form in place.
std::string base_name(const c10::FunctionSchema& schema) {
  const auto name = schema.name().substr(schema.name().find("::") + 2);
  const bool in_place = name.size() > 1 && name.back() == '_';
  return in_place ? name.substr(0, name.size() - 1) : name;
}

const KernelTypes* find_row(const c10::FunctionSchema& schema) {
  const auto base = base_name(schema);
  const auto* found = std::lower_bound(
      std::begin(kKernelTypes), std::end(kKernelTypes), base,
      [](const KernelTypes& row, const std::string& wanted) { return row.name < wanted; });
  const bool is_row = schema.name().rfind("aten::", 0) == 0 && found != std::end(kKernelTypes) && found->name == base;
  return is_row && found->refused[kReleaseColumn] != 0 ? found : nullptr;
}

// The kernel that a call takes by its arguments, of those that lack bool; empty if it takes another.
using ChosenKernel = std::string_view (*)(c10::ArrayRef<c10::IValue> arguments);

// cuda/BinaryDivTruncKernel.cu and BinaryDivFloorKernel.cu; without rounding bools are divided as float32.
std::string_view division_kernel(c10::ArrayRef<c10::IValue> arguments) {
  if (arguments[2].isNone()) {
    return {};
  }
  return arguments[2].toStringRef() == "trunc" ? "div_trunc_cuda" : "div_floor_cuda";
}

// TensorCompare.cpp: one bound is a maximum or minimum, which bool has.
std::string_view clamp_kernel(c10::ArrayRef<c10::IValue> arguments) {
  return arguments[1].isTensor() && arguments[2].isTensor() ? "clamp_cuda" : "";
}

// cuda/Indexing.cu; the last argument but `out` is `include_self`.
std::string_view index_reduce_kernel(c10::ArrayRef<c10::IValue> arguments) {
  return arguments[5].toBool() ? "index_reduce" : "index_reduce_func_cuda_exclude_input_init";
}

template <const char* kName>
std::string_view the_kernel(c10::ArrayRef<c10::IValue> /*arguments*/) {
  return kName;
}
constexpr char kClampScalar[] = "clamp_scalar_cuda", kPower[] = "pow_cuda", kMedian[] = "median_out_impl",
               kSearch[] = "searchsorted_out_cuda", kCumsum[] = "cumsum_cuda", kCumprod[] = "cumprod_cuda",
               kLinspace[] = "linspace_cuda", kLogspace[] = "logspace_cuda", kArange[] = "arange_cuda";

// ScatterGatherKernel.cu: a sum has bool.
std::string_view scatter_reduce_kernel(c10::ArrayRef<c10::IValue> arguments) {
  return arguments[4].toStringRef() == "sum" ? "" : "cuda_scatter_gather_base_kernel_func";
}

// Without a type bools are counted in int64.
template <const char* kName>
std::string_view scan_kernel(c10::ArrayRef<c10::IValue> arguments) {
  return arguments[2].isNone() ? "" : kName;
}

// A factory's out= form, which the functional one calls. One number is filled in.
template <const char* kName>
std::string_view spaced_kernel(c10::ArrayRef<c10::IValue> arguments) {
  return arguments[2].toInt() > 1 ? kName : "";
}

struct ChosenForm {
  std::string_view operators;  // begins the name without `aten::`, and any underscore at its end
  std::string_view overloads;  // begins the overload's name
  ChosenKernel kernel;
};

// The first that fits. In ATen/native/cuda: TensorCompare.cu, PowKernel.cu, Sorting.cpp, Bucketization.cu,
// ScatterGatherKernel.cu, RangeFactories.cu.
constexpr ChosenForm kChosenForms[] = {
    {"div", "Tensor_mode", &division_kernel},
    {"div", "out_mode", &division_kernel},
    {"clamp", "Tensor", &clamp_kernel},
    {"clamp", "", &the_kernel<kClampScalar>},
    {"clamp_min", "Tensor", nullptr},
    {"clamp_min", "", &the_kernel<kClampScalar>},
    {"clamp_max", "Tensor", nullptr},
    {"clamp_max", "", &the_kernel<kClampScalar>},
    {"pow", "Tensor_Scalar", nullptr},
    {"pow", "Tensor", &the_kernel<kPower>},
    {"cumsum", "", &scan_kernel<kCumsum>},
    {"cumprod", "", &scan_kernel<kCumprod>},
    {"index_reduce", "", &index_reduce_kernel},
    {"median", "dim", &the_kernel<kMedian>},
    {"nanmedian", "dim", &the_kernel<kMedian>},
    {"searchsorted", "", &the_kernel<kSearch>},
    {"scatter_reduce", "two", &scatter_reduce_kernel},
    {"linspace", "out", &spaced_kernel<kLinspace>},
    {"logspace", "out", &spaced_kernel<kLogspace>},
    {"arange", "start_out", &the_kernel<kArange>},
};

ChosenKernel find_chosen_kernel(const c10::FunctionSchema& schema) {
  for (const auto& form : kChosenForms) {
    const bool has_name = schema.name().rfind("aten::", 0) == 0 && base_name(schema) == form.operators;
    if (has_name && schema.overload_name().rfind(std::string(form.overloads), 0) == 0) {
      return form.kernel;
    }
  }
  return nullptr;
}

bool is_absent(const std::string& name) {
  return (name.rfind("quantized::", 0) == 0 && name.find("_dynamic") != std::string::npos) ||
      name == "aten::histogram" || name.rfind("aten::_histogramdd_", 0) == 0 || name == "aten::_spdiags";
}

// What CUDA's kernel for an operator asks of its arguments.
struct Rules {
  const KernelTypes* row;  // null if it has all types of the CPU's
  ChosenKernel chosen;     // null for most
  bool needs_one_type;     // it reads weights in the type of the input
  bool is_absent;
};

Rules find_rules(const c10::FunctionSchema& schema) {
  const auto& name = schema.name();
  return {
      find_row(schema), find_chosen_kernel(schema),
      name == "aten::native_layer_norm" || name == "aten::native_group_norm", is_absent(name)};
}

const Rules& rules_of(const c10::FunctionSchema& schema) {
  thread_local OperatorCache<Rules> rules;
  return rules.get(schema, &find_rules);
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

struct FirstTensor {
  at::Tensor tensor;    // undefined if there is none
  bool is_out = false;  // a factory has no other, and makes it as large as it needs
};

FirstTensor first_tensor(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto& value = arguments[i];
    if (value.isTensor() && value.toTensor().defined()) {
      return {value.toTensor(), schema.arguments()[i].is_out()};
    }
    if (value.isTensorList() && !value.toTensorList().empty()) {
      return {value.toTensorList().get(0), schema.arguments()[i].is_out()};
    }
  }
  return {};
}

bool keeps_type(at::ScalarType type, const at::Tensor& other) {
  return !other.defined() || c10::promoteTypes(type, other.scalar_type()) == type;
}

bool is_number(const c10::Type& type) {
  const auto* optional = type.castRaw<c10::OptionalType>();
  return (optional == nullptr ? type : *optional->getElementType()).kind() == c10::TypeKind::NumberType;
}

// Whether a number may change the type that a kernel works in; those of these names are cast to the tensors' type.
bool may_widen(const std::string& name) {
  static const std::unordered_set<std::string> cast = {"alpha", "beta", "margin", "p", "threshold", "value", "weight"};
  return cast.count(name) == 0;
}

// Whether an argument leaves the type of the first tensor as the one that the kernel works in.
bool keeps_type(at::ScalarType type, const c10::Argument& argument, const c10::IValue& value) {
  if (argument.name() == "index" || argument.name() == "sorter") {
    return true;
  }
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
  if (value.isScalar() && is_number(*argument.type()) && may_widen(argument.name())) {
    return c10::promoteTypes(type, value.toScalar().type()) == type || at::isFloatingType(type) ||
        (at::isIntegralType(type, /*includeBool=*/false) && value.isInt());
  }
  return true;
}

bool keep_type(at::ScalarType type, const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!schema.arguments()[i].is_out() && !keeps_type(type, schema.arguments()[i], arguments[i])) {
      return false;
    }
  }
  return true;
}

}  // namespace

TypeSet refused_types(const c10::FunctionSchema& schema) {
  const auto rules = find_rules(schema);
  const auto refused = rules.row == nullptr ? TypeSet{0} : rules.row->refused[kReleaseColumn];
  return refused | (rules.chosen == nullptr ? TypeSet{0} : TypeSet{1} << static_cast<unsigned>(at::kBool));
}

void check_types(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments) {
  const auto& rules = rules_of(schema);
  TORCH_CHECK_NOT_IMPLEMENTED(
      !rules.is_absent, "Could not run '", schema.operator_name(),
      "' with arguments from the 'CUDA' backend. This could be because the operator doesn't exist for this backend, or "
      "was omitted during the selective/custom build process (if using custom build).");
  if (rules.needs_one_type) {
    check_one_type(schema, arguments);
  }
  if (rules.row == nullptr && rules.chosen == nullptr) {
    return;
  }
  const auto first = first_tensor(schema, arguments);
  if (!first.tensor.defined() || (first.tensor.numel() == 0 && !first.is_out)) {
    return;
  }
  const auto type = first.tensor.scalar_type();
  const bool row_refuses = rules.row != nullptr && contains(rules.row->refused[kReleaseColumn], type);
  const auto chosen = rules.chosen != nullptr && type == at::kBool ? rules.chosen(arguments) : std::string_view();
  if ((!row_refuses && chosen.empty()) || !(first.is_out || keep_type(type, schema, arguments))) {
    return;
  }
  const auto kernel = row_refuses ? rules.row->kernel : chosen;
  TORCH_CHECK(!kernel.empty(), "getCudnnDataTypeFromScalarType() not supported for ", c10::toString(type));
  SIM_CHECK_DISPATCH(false, '"', kernel, "\" not implemented for '", c10::toString(type), "'");
}

}  // namespace sim::types
