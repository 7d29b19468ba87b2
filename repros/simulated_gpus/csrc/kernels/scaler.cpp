// GradScaler's two operators where PyTorch has them for CUDA only (on the CPU from 2.3).
//
// Contract held: native_functions.yaml (`_amp_foreach_non_finite_check_and_unscale_`, `_amp_update_scale_`) and
// ATen/native/cuda/AmpKernels.cu: gradients are unscaled in place, `found_inf` becomes one if any was not finite; the
// scale backs off after an overflow, and grows after `growth_interval` steps without one unless that makes it infinite.
#include "dispatch/placement.h"
#include "kernels/kernels.h"
#include "runtime/memory.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/isfinite.h>

#include <cmath>

namespace sim::scaler {

namespace {

void unscale(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
  const auto arguments = torch::jit::last(*stack, 3);
  check_placement(op.schema(), arguments);
  const at::AutoDispatchBelowADInplaceOrView below;
  const auto found = host_alias(arguments[1].toTensor());
  const auto inverse = host_alias(arguments[2].toTensor());
  for (at::Tensor gradient : host_aliases(arguments[0].toTensorVector())) {
    if (!at::isfinite(gradient).all().item<bool>()) {
      found.fill_(1);
    }
    gradient.mul_(inverse.to(gradient.scalar_type()));
  }
  torch::jit::drop(*stack, 3);
}

void update_scale(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
  const auto arguments = torch::jit::last(*stack, 6);
  check_placement(op.schema(), arguments);
  const at::AutoDispatchBelowADInplaceOrView below;
  const auto self = arguments[0].toTensor();
  const auto scale = host_alias(self), growth_tracker = host_alias(arguments[1].toTensor());
  const auto found = host_alias(arguments[2].toTensor());
  if (found.item<float>() != 0) {
    scale.mul_(arguments[4].toDouble());
    growth_tracker.zero_();
  } else if (growth_tracker.item<int>() + 1 == arguments[5].toInt()) {
    const auto grown = static_cast<float>(scale.item<float>() * arguments[3].toDouble());
    if (std::isfinite(grown)) {
      scale.fill_(grown);
    }
    growth_tracker.zero_();
  } else {
    growth_tracker.add_(1);
  }
  torch::jit::drop(*stack, 6);
  torch::jit::push(*stack, self);
}

}  // namespace

void register_kernels(Registrar& registrar) {
  const auto lacks_host_kernel = [](const char* name) {
    const auto op = c10::Dispatcher::singleton().findSchema({name, ""});
    return op.has_value() && !op->hasKernelForDispatchKey(c10::DispatchKey::CPU);
  };
  if (lacks_host_kernel("aten::_amp_update_scale_")) {
    registrar.impl(
        "_amp_foreach_non_finite_check_and_unscale_", c10::KernelFunction::makeFromBoxedFunction<&unscale>());
    registrar.impl("_amp_update_scale_", c10::KernelFunction::makeFromBoxedFunction<&update_scale>());
  }
}

}  // namespace sim::scaler
