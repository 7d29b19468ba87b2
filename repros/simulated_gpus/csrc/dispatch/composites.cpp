// Operators with a composite kernel for every device that must reach this device before that kernel.
//
// Contracts held: native_functions.yaml (where CUDA has a kernel besides the composite one, this device has one too)
// and torchgen's code for a structured operator (CUDA checks placement before it makes the result).
#include "dispatch/composites.h"

#include "dispatch/fallback.h"
#include "dispatch/foreach.h"
#include "dispatch/placement.h"
#include "dispatch/tensor_lists.h"
#include "runtime/memory.h"
#include "torch_versions.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace sim::composites {

void run_composite(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
  op.redispatchBoxed(
      c10::DispatchKeySet(c10::DispatchKey::PrivateUse2), stack);  // a device type that is never registered
}

namespace {

// Whether all tensors are on one simulated device. Python numbers, which arrive as CPU tensors, may join any device.
bool are_on_one_device(c10::ArrayRef<c10::IValue> arguments) {
  SIM_OPTIONAL<c10::Device> common;
  const auto is_on_it = [&](const at::Tensor& tensor) {
    if (!tensor.defined() || tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
      return true;
    }
    const bool is_first = !common.has_value();
    if (is_first) {
      common = tensor.device();
    }
    return is_sim(tensor) && tensor.device() == *common;
  };
  return std::all_of(arguments.begin(), arguments.end(), [&](const c10::IValue& value) {
    return value.isTensor() ? is_on_it(value.toTensor()) : !value.isTensorList() && !is_optional_tensor_list(value);
  });
}

}  // namespace

void run_structured(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const size_t count = op.schema().arguments().size();
  const bool on_one_device = are_on_one_device(c10::ArrayRef<c10::IValue>(*stack).slice(stack->size() - count, count));
  (on_one_device ? &run_on_host : &run_composite)(op, keys, stack);
}

namespace {

using Kernel = c10::KernelFunction;

// CUDA has a kernel for each; the CPU's may be the composite one.
bool is_foreach(const c10::OperatorHandle& op) {
  return op.schema().name().rfind("aten::_foreach_", 0) == 0 &&
      op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU);
}

// Whether a CUDA build has a kernel that would ask the driver. One without a CPU kernel is refused by name.
bool has_gpu_kernel([[maybe_unused]] const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(c10::DispatchKey::CUDA);
}

// The kernel that replaces PyTorch's composite one on this device; none if the composite one is right.
SIM_OPTIONAL<Kernel> kernel_before_composite(const c10::OperatorHandle& op) {
  const auto& schema = op.schema();
  if (is_foreach(op)) {
    return Kernel::makeFromBoxedFunction<&run_each>();
  }
  // A structured operator (`addmm`) would arrive as its out= form, after PyTorch has made the result and checked the
  // shapes. CUDA checks placement before both, and its message names the arguments in that order.
  if (op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional)) {
    return kernel_checks_placement(schema) ? Kernel::makeFromBoxedFunction<&run_structured>()
                                           : Kernel::makeFromBoxedFunction<&run_on_host>();
  }
  if (has_composite_for_others(schema) || has_gpu_kernel(op)) {
    return Kernel::makeFromBoxedFunction<&run_on_host>();
  }
  return {};
}

}  // namespace

void for_each_operator(c10::function_ref<void(const c10::OperatorHandle& op, const std::string& name)> each) {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findSchema(name);
    if (name.name.rfind("aten::", 0) == 0 && op.has_value()) {
      const auto base = name.name.substr(std::strlen("aten::"));
      each(*op, name.overload_name.empty() ? base : base + "." + name.overload_name);
    }
  }
}

void register_remaining_kernels(Registrar& registrar) {
  // Composite kernels that end in a function of the device's own (ATen/native/TensorFactories.cpp, kaiser_window_stub).
  for (const char* name : {"kaiser_window", "kaiser_window.periodic", "kaiser_window.beta"}) {
    registrar.impl(name, Kernel::makeFromBoxedFunction<&run_on_host>());
  }
  for_each_operator([&](const c10::OperatorHandle& op, const std::string& name) {
    const bool has_kernel_for_tensors =
        op.hasKernelForDispatchKey(c10::DispatchKey::CPU) || has_gpu_kernel(op) || is_foreach(op);
    if (!has_kernel_for_tensors || registrar.has_kernel(name)) {
      return;
    }
    if (auto kernel = kernel_before_composite(op)) {
      registrar.impl(name, std::move(*kernel));
    }
  });
}

}  // namespace sim::composites
