// CUDA's contract on placement: which devices an operator's arguments may be on.
//
// Contract held: what torchgen generates for every CUDA kernel (torchgen/dest/register_dispatch_key.py): all tensor
// arguments, outputs first, pass c10::impl::check_and_update_common_device, which words the refusal as this version of
// PyTorch does. Operators marked `device_check: NoCheck` in native_functions.yaml are left to their kernel; those kernels
// are, nearly all, TensorIterator's (which lets a CPU scalar mix with a device), the index operators (which fetch their
// indices from any device) and the foreach operators (which check position by position). at::native::cpu_fallback checks
// nothing and moves everything to the CPU: a placement error would go unseen, and so would the failures shown here.
#include "sim.h"

#include "unchecked_operators.h"  // generated from native_functions.yaml by build.py

#include <ATen/core/op_registration/adaption.h>

#include <algorithm>
#include <string>
#include <unordered_map>

namespace sim {

namespace {

using Device = SIM_OPTIONAL<c10::Device>;

enum class Rule { same_device, fused_with_tensor_lr, tensor_iterator, position_by_position };

Rule find_rule(const c10::FunctionSchema& schema) {
  const auto name = schema.name() + (schema.overload_name().empty() ? "" : "." + schema.overload_name());
  const auto* end = std::end(unchecked_operators);
  if (std::find(std::begin(unchecked_operators), end, name) == end) {
    return Rule::same_device;
  }
  if (name.rfind("aten::_fused_", 0) == 0) {
    return Rule::fused_with_tensor_lr;
  }
  return name.rfind("aten::_foreach_", 0) == 0 ? Rule::position_by_position : Rule::tensor_iterator;
}

Rule rule_of(const c10::FunctionSchema& schema) {
  thread_local std::unordered_map<const c10::FunctionSchema*, Rule> known;
  const auto found = known.find(&schema);
  return found != known.end() ? found->second : known.emplace(&schema, find_rule(schema)).first->second;
}

bool is_output(const c10::Argument& argument) {
  return argument.is_out() || (argument.alias_info() != nullptr && argument.alias_info()->isWrite());
}

// Outputs first, the others after, each group in the schema's order.
template <class Visit>
void for_outputs_first(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments, const Visit& each) {
  for (const bool outputs : {true, false}) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (schema.arguments()[i].is_out() == outputs) {
        each(schema.arguments()[i], arguments[i]);
      }
    }
  }
}

Device check_same_device(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments, bool free_learning_rate) {
  Device common;
  for_outputs_first(schema, arguments, [&](const c10::Argument& argument, const c10::IValue& value) {
    const char* method = schema.name().c_str();
    const char* name = argument.name().c_str();
    if (free_learning_rate && argument.name() == "lr") {
      return;
    }
    if (value.isTensor()) {
      c10::impl::check_and_update_common_device(common, value.toTensor(), method, name);
    } else if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorList()) {
        c10::impl::check_and_update_common_device(common, tensor, method, name);
      }
    } else if (value.isOptionalTensorList()) {
      c10::impl::check_and_update_common_device(common, value.toOptionalTensorList(), method, name);
    }
  });
  return common;
}

// TensorIteratorBase::compute_types: a CPU scalar is no party to the choice of device unless it is written to.
bool is_free_scalar(const at::Tensor& tensor, bool output) {
  return !output && tensor.dim() == 0 && tensor.device().is_cpu();
}

void take_part(Device& common, const at::Tensor& tensor, bool output) {
  if (!tensor.defined() || is_free_scalar(tensor, output)) {
    return;
  }
  if (!common.has_value()) {
    common = tensor.device();
  }
  TORCH_CHECK(
      *common == tensor.device(), "Expected all tensors to be on the same device, but found at least two devices, ", *common,
      " and ", tensor.device(), "!");
}

// The common device is an input's where there is one, as the output of an iterator may be undefined.
Device check_iterator(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments) {
  Device common;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool output = is_output(schema.arguments()[i]);
    if (arguments[i].isTensor()) {
      take_part(common, arguments[i].toTensor(), output);
    } else if (arguments[i].isTensorList()) {
      for (const at::Tensor& tensor : arguments[i].toTensorList()) {
        take_part(common, tensor, output);
      }
    }
  }
  return common;
}

Device check_positions(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments) {
  std::vector<Device> common;
  Device first;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].isTensorList()) {
      continue;
    }
    const auto list = arguments[i].toTensorList();
    common.resize(std::max(common.size(), list.size()));
    for (size_t position = 0; position < list.size(); ++position) {
      take_part(common[position], list[position], is_output(schema.arguments()[i]));
      if (!first.has_value()) {
        first = common[position];
      }
    }
  }
  return first;
}

}  // namespace

bool kernel_checks_placement(const c10::FunctionSchema& schema) {
  return rule_of(schema) == Rule::tensor_iterator;
}

SIM_OPTIONAL<c10::Device> check_placement(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments) {
  switch (rule_of(schema)) {
    case Rule::same_device:
      return check_same_device(schema, arguments, /*free_learning_rate=*/false);
    case Rule::fused_with_tensor_lr:
      return check_same_device(schema, arguments, /*free_learning_rate=*/true);
    case Rule::tensor_iterator:
      return check_iterator(schema, arguments);
    case Rule::position_by_position:
      return check_positions(schema, arguments);
  }
  TORCH_INTERNAL_ASSERT(false, "unreachable");
}

}  // namespace sim
