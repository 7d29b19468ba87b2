// Operators whose code for all devices hard-codes device types, or calls kernels that only some devices have. They run
// on the host.
//
// - aten/src/ATen/native/ReduceOps.cpp `mode_out`: "mode only supports CPU, CUDA ..."
// - the same, `nanmean_out`: calls the kernel of `nansum` past the dispatcher
// - aten/src/ATen/native/BinaryOps.cpp `ldexp`: calls a kernel past the dispatcher for integer exponents (2.15)
// - aten/src/ATen/native/BatchLinearAlgebra.cpp `linalg_eigvals_out` (until 2.2): takes every tensor that is not on
//   the CPU for CUDA's, and MAGMA wants the results in the CPU's memory
#include "dispatch/fallback.h"
#include "kernels/kernels.h"
#include "runtime/memory.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/linalg_eig.h>
#include <ATen/ops/linalg_eigvals.h>

#include <string>
#include <tuple>

namespace sim::hardcoded_device_types {

namespace {

void mode_values(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const auto& self = torch::jit::peek(*stack, 0, 5).toTensor();
  for (const size_t at : {3, 4}) {
    const auto& given = torch::jit::peek(*stack, at, 5).toTensor();
    TORCH_CHECK(
        self.device() == given.device(), "expected device '", self.device(), "' but got '", given.device(), "' for ",
        at == 3 ? "values" : "indices", " output");
  }
  run_on_host(op, keys, stack);
}

at::Tensor eigenvalues(const at::Tensor& self) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const auto host = at::linalg_eigvals(host_alias(self));
  return device_tensor(host, adopt(host.storage(), self.device().index()));
}

// As in PyTorch: the derivative is that of `linalg_eig`.
at::Tensor eigenvalues_with_autograd(const at::Tensor& self) {
  const bool derived = at::GradMode::is_enabled() && self.requires_grad();
  return derived ? std::get<0>(at::linalg_eig(self)) : eigenvalues(self);
}

// From 2.3 the CPU and CUDA have their own kernels.
bool eigenvalues_are_composite() {
  const auto op = c10::Dispatcher::singleton().findSchema({"aten::linalg_eigvals", "out"});
  return op.has_value() && !op->hasKernelForDispatchKey(c10::DispatchKey::CPU);
}

// Other composites are derived operator by operator.
bool has_own_derivative(const std::string& name) {
  const auto dot = name.find('.');
  const auto overload = dot == std::string::npos ? "" : name.substr(dot + 1);
  const auto op = c10::Dispatcher::singleton().findSchema({"aten::" + name.substr(0, dot), overload});
  return op.has_value() && op->hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd);
}

}  // namespace

void register_kernels(Registrar& registrar) {
  registrar.impl("mode.values", c10::KernelFunction::makeFromBoxedFunction<&mode_values>());
  registrar.impl("nanmean.out", c10::KernelFunction::makeFromBoxedFunction<&run_on_host>());
  for (const char* name : {"ldexp.Tensor", "ldexp_", "ldexp.out"}) {
    if (has_own_derivative(name)) {
      registrar.impl(name, c10::KernelFunction::makeFromBoxedFunction<&run_on_host>());
    }
  }
  if (eigenvalues_are_composite()) {
    registrar.impl("linalg_eigvals.out", c10::KernelFunction::makeFromBoxedFunction<&run_on_host>());
    registrar.impl("linalg_eigvals", &eigenvalues);
  }
}

void register_autograd_kernels(Registrar& registrar) {
  if (eigenvalues_are_composite()) {
    registrar.impl("linalg_eigvals", &eigenvalues_with_autograd);
  }
}

}  // namespace sim::hardcoded_device_types
