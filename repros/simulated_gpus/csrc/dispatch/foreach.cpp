// Foreach operators: one call for lists of tensors, as optimizers make. CUDA computes the tensors of one device in one
// kernel; the CPU's kernel calls an operator for each tensor.
//
// Contract held: ATen/native/cuda/ForeachUtils.cuh and its callers (a change counts once in each tensor's version).
#include "dispatch/foreach.h"

#include "autograd/threads.h"
#include "dispatch/placement.h"
#include "runtime/cuda_errors.h"
#include "runtime/memory.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>

namespace sim::foreach {

namespace {

// The device of a foreach operator's lists, if it is one, and no other tensor is on a device.
Placement common_place(c10::ArrayRef<c10::IValue> arguments) {
  Placement common;
  for (const auto& value : arguments) {
    if (value.isTensor() && !(value.toTensor().device().is_cpu() && value.toTensor().dim() == 0)) {
      return {};
    }
    if (value.isTensorList()) {
      const auto list = value.toTensorList();
      for (const at::Tensor& tensor : list) {
        common = common.has_value() || !is_sim(tensor) ? common : Placement(tensor.device());
        if (!common.has_value() || tensor.device() != *common || !is_plain(tensor) || tensor.is_inference()) {
          return {};
        }
      }
    }
  }
  return common;
}

c10::List<at::Tensor> map_list(const c10::IValue& list, c10::function_ref<at::Tensor(const at::Tensor&)> convert) {
  const auto tensors = list.toTensorList();
  c10::List<at::Tensor> converted;
  converted.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    converted.push_back(convert(tensor));
  }
  return converted;
}

// A foreach operator on tensors of one device, which CUDA computes together. Its results are new memory.
void run_together(
    const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments, c10::DeviceIndex index,
    torch::jit::Stack* stack) {
  check_context();
  torch::jit::Stack hosts;
  hosts.reserve(arguments.size());
  for (const auto& value : arguments) {
    hosts.push_back(value.isTensorList() ? c10::IValue(map_list(value, &kept_alias)) : value);
  }
  {
    const at::AutoDispatchBelowADInplaceOrView below;
    agree_on_threads();
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &hosts);
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (is_written(op.schema().arguments()[i]) && arguments[i].isTensorList()) {
      bump_versions(arguments[i].toTensorVector());
    }
  }
  torch::jit::drop(*stack, arguments.size());
  for (const auto& result : hosts) {
    stack->push_back(
        map_list(result, [&](const at::Tensor& host) { return device_tensor(host, adopt(host.storage(), index)); }));
  }
}

}  // namespace

void bump_versions(at::TensorList tensors) {
  if (!c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::ADInplaceOrView)) {
    for (const at::Tensor& tensor : tensors) {
      tensor.unsafeGetTensorImpl()->bump_version();
    }
  }
}

void run_each(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
  const auto& parameters = op.schema().arguments();
  const auto arguments = c10::ArrayRef<c10::IValue>(*stack).slice(stack->size() - parameters.size(), parameters.size());
  const bool is_out =
      std::any_of(parameters.begin(), parameters.end(), [](const c10::Argument& each) { return each.is_out(); });
  const bool is_below_autograd = c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::AutogradFunctionality);
  const auto place = !is_out && is_below_autograd ? common_place(arguments) : Placement();
  if (place.has_value()) {
    run_together(op, arguments, place->index(), stack);
  } else {
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  }
}

}  // namespace sim::foreach
