// CUDA's contract on placement: which devices an operator's arguments may be on.
//
// Contract held: what torchgen generates for every CUDA kernel (torchgen/dest/register_dispatch_key.py): all tensor
// arguments, outputs first, pass c10::impl::check_and_update_common_device, which raises this version's message.
// Operators marked `device_check: NoCheck` in native_functions.yaml are checked by their kernel: nearly all by
// TensorIterator (which lets a CPU scalar mix with a device), reductions by a comparison of the results with the meta
// function's, and a few by a check of their own (kernel_checks.cpp). at::native::cpu_fallback checks nothing and moves
// everything to the CPU, which would hide placement errors.
#include "dispatch/placement.h"

#include "dispatch/kernel_checks.h"
#include "dispatch/operator_cache.h"
#include "dispatch/tensor_lists.h"
#include "torch_versions.h"

#include "operators.h"  // generated from native_functions.yaml by build.py

#include <ATen/core/op_registration/adaption.h>

#include <algorithm>
#include <string>

namespace sim::placement {

namespace {

// Visits the outputs first, then the other arguments, each group in the schema's order.
template <class Visit>
void visit_outputs_first(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments, const Visit& each) {
  for (const bool outputs : {true, false}) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (schema.arguments()[i].is_out() == outputs) {
        each(schema.arguments()[i], arguments[i]);
      }
    }
  }
}

Placement check_all(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments) {
  return check_all_but(schema, arguments, /*name=*/"");
}

// A fused optimizer reads a learning rate that is a tensor, so it may be on any device.
Placement check_all_but_learning_rate(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments) {
  return check_all_but(schema, arguments, "lr");
}

// A result must be where its operator's meta function puts it (torchgen's `resize_out`): with the first of the other
// tensors.
Placement check_results(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments) {
  const auto* first =
      std::find_if(arguments.begin(), arguments.end(), [](const c10::IValue& value) { return value.isTensor(); });
  const auto place = first->toTensor().device();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (schema.arguments()[i].is_out()) {
      const auto given = arguments[i].toTensor().device();
#if SIM_TORCH_AT_LEAST(2, 9)
      // CUDA's kernel, chosen by its result's device, first makes the inputs' device current. Before 2.9 an internal
      // assertion fails.
      TORCH_CHECK(
          !place.is_cpu() || given == place, "CUDAGuardImpl initialized with non-CUDA DeviceType: ", place.type());
#endif
      TORCH_CHECK(given == place, "Expected out tensor to have device ", place, ", but got ", given, " instead");
    }
  }
  return place;
}

// TensorIterator lets a CPU scalar that is only read mix with a device, next to another input.
Placement check_tensor_iterator(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments) {
  size_t inputs = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    inputs += !schema.arguments()[i].is_out() && arguments[i].isTensor() ? 1 : 0;
  }
  return check_iterator(schema, arguments, [&](const c10::Argument& argument, const at::Tensor& tensor) {
    return inputs > 1 && !is_written(argument) && tensor.dim() == 0 && tensor.device().is_cpu();
  });
}

template <size_t Count>
bool is_listed(const std::string_view (&names)[Count], const std::string& name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

std::string full_name(const c10::FunctionSchema& schema) {
  return schema.name() + (schema.overload_name().empty() ? "" : "." + schema.overload_name());
}

// The name of CUDA's kernel in the check's message, which torchgen generates
// (torchgen/dest/register_dispatch_key.py): an operator's overload comes first, a structured operator's last.
std::string make_method_name(const c10::FunctionSchema& schema) {
  const auto& parameters = schema.arguments();
  const bool is_out =
      std::any_of(parameters.begin(), parameters.end(), [](const c10::Argument& each) { return each.is_out(); });
  const auto name = schema.name().substr(schema.name().find("::") + 2) + (is_out ? "_out" : "");
  const auto& overload = schema.overload_name();
  if (is_listed(structured_operators, full_name(schema))) {
    return "wrapper_CUDA_" + name + (overload.empty() ? "" : "_" + overload);
  }
  return "wrapper_CUDA_" + overload + "_" + name;
}

const std::string& method_name(const c10::FunctionSchema& schema) {
  thread_local OperatorCache<std::string> names;
  return names.get(schema, &make_method_name);
}

PlacementCheck find_check(const c10::FunctionSchema& schema) {
  const auto name = full_name(schema);
  if (const auto own = kernel_check(name)) {
    return own;
  }
  const bool is_ldexp =
      schema.name() == "aten::ldexp" || schema.name() == "aten::ldexp_";  // a composite with an iterator inside
  if (!is_listed(unchecked_operators, name) && !is_ldexp) {
    return &check_all;
  }
  if (name.rfind("aten::_fused_", 0) == 0) {
    return &check_all_but_learning_rate;
  }
  return is_listed(operators_without_iterator, name) ? &check_results : &check_tensor_iterator;
}

}  // namespace

bool is_written(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

Placement check_all_but(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments, const char* except) {
  return check_as(method_name(schema).c_str(), schema, arguments, except);
}

Placement check_as(
    const char* method, const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments, const char* except) {
  Placement common;
  visit_outputs_first(schema, arguments, [&](const c10::Argument& argument, const c10::IValue& value) {
    const char* name = argument.name().c_str();
    if (argument.name() == except) {
      return;
    }
    if (value.isTensor()) {
      c10::impl::check_and_update_common_device(common, value.toTensor(), method, name);
    } else if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorList()) {
        c10::impl::check_and_update_common_device(common, tensor, method, name);
      }
    } else if (is_optional_tensor_list(value)) {
      c10::impl::check_and_update_common_device(common, to_optional_tensor_list(value), method, name);
    }
  });
  return common;
}

// TensorIteratorBase::compute_types: the common device is the first that is not the CPU.
Placement check_iterator(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments, IsExempt is_exempt) {
  Placement common;
  visit_outputs_first(schema, arguments, [&](const c10::Argument& /*argument*/, const c10::IValue& value) {
    const bool is_given = value.isTensor() && value.toTensor().defined();
    if (is_given && (!common.has_value() || common->is_cpu())) {
      common = value.toTensor().device();
    }
  });
  visit_outputs_first(schema, arguments, [&](const c10::Argument& argument, const c10::IValue& value) {
    if (value.isTensor() && value.toTensor().defined() && !is_exempt(argument, value.toTensor())) {
      const auto device = value.toTensor().device();
      TORCH_CHECK(
          *common == device, "Expected all tensors to be on the same device, but found at least two devices, ", *common,
          " and ", device, "!");
    }
  });
  return common;
}

bool kernel_checks_placement(const c10::FunctionSchema& schema) {
  return is_listed(unchecked_operators, full_name(schema));
}

bool has_composite_for_others(const c10::FunctionSchema& schema) {
  return is_listed(operators_with_composite_for_others, full_name(schema));
}

Placement check_placement(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments) {
  thread_local OperatorCache<PlacementCheck> checks;
  return checks.get(schema, &find_check)(schema, arguments);
}

}  // namespace sim::placement
