// The kernels of this device, by dispatch key: the only place that registers any.
//
// Contract held: an operator has one kernel under a key. Registrar refuses a second one; kernels for a whole class of
// operators are registered last, and leave out the operators that have a kernel already.
#include "dispatch/composites.h"
#include "dispatch/fallback.h"
#include "dispatch/quantized_operators.h"
#include "kernels/kernels.h"
#include "registrar.h"
#include "runtime/pinned.h"
#include "torch_versions.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <string>

namespace sim::registrations {

namespace {

// Gives run_on_host to the operators that have a kernel for tensors of a layout: a CPU build has none for CUDA's, those
// of a CUDA build ask the driver.
void register_layout(Registrar& registrar, c10::DispatchKey cpu, c10::DispatchKey cuda) {
  for_each_operator([&](const c10::OperatorHandle& op, const std::string& name) {
    if (op.hasKernelForDispatchKey(cpu) || op.hasKernelForDispatchKey(cuda)) {
      registrar.impl(name, c10::KernelFunction::makeFromBoxedFunction<&run_on_host>());
    }
  });
}

void register_dense() {
  Registrar registrar(c10::DispatchKey::CUDA);
  pinned::register_kernels(registrar);
  convolution::register_kernels(registrar);
  ctc_loss::register_kernels(registrar);
  cudnn_layers::register_kernels(registrar);
  cudnn_rnn::register_kernels(registrar);
  fast_path::register_kernels(registrar);
  fused::register_kernels(registrar);
  gpu_only::register_kernels(registrar);
  hardcoded_device_types::register_kernels(registrar);
  minimal::register_kernels(registrar);
  random::register_kernels(registrar);
  random_dropout::register_kernels(registrar);
  random_permutation::register_kernels(registrar);
  random_sampling::register_kernels(registrar);
  recurrent::register_kernels(registrar);
  scaler::register_kernels(registrar);
  sdp_choice::register_kernels(registrar);
  sdp_kernels::register_kernels(registrar);
#if SIM_HAS_COLLECTIVES
  sync_batch_norm::register_kernels(registrar);
#endif
  composites::register_remaining_kernels(registrar);
}

void register_autograd() {
  Registrar registrar(c10::DispatchKey::AutogradCUDA);
  cudnn_layers::register_kernels(registrar);
  gpu_only::register_autograd_kernels(registrar);
  hardcoded_device_types::register_autograd_kernels(registrar);
}

void register_conjugate() {
  Registrar registrar(c10::DispatchKey::Conjugate);
  minimal::register_lazy_kernels(registrar);
}

void register_negative() {
  Registrar registrar(c10::DispatchKey::Negative);
  minimal::register_lazy_kernels(registrar);
}

void register_sparse() {
  Registrar registrar(c10::DispatchKey::SparseCUDA);
  register_layout(registrar, c10::DispatchKey::SparseCPU, c10::DispatchKey::SparseCUDA);
}

void register_nested() {
  Registrar registrar(c10::DispatchKey::NestedTensorCUDA);
  register_layout(registrar, c10::DispatchKey::NestedTensorCPU, c10::DispatchKey::NestedTensorCUDA);
}

void register_quantized() {
  Registrar registrar(c10::DispatchKey::QuantizedCUDA);
  quantized_operators::register_kernels(registrar);
}

// The kernels of all other operators.
void register_fallbacks() {
  for (const auto key : {c10::DispatchKey::CUDA, c10::DispatchKey::SparseCUDA, c10::DispatchKey::NestedTensorCUDA}) {
    Registrar(key).fallback(c10::KernelFunction::makeFromBoxedFunction<&run_on_host>());
  }
  // Operators without a derivative (c10d::allreduce_) must pass through autograd. Early versions register no fallback
  // for this device (2.1 and 2.2 do not, 2.13 does); registering a second one raises, so check first.
  if (!c10::Dispatcher::singleton().hasBackendFallbackForDispatchKey(c10::DispatchKey::AutogradCUDA)) {
    Registrar(c10::DispatchKey::AutogradCUDA).fallback(c10::KernelFunction::makeFallthrough());
  }
}

const bool registered = [] {
  register_dense();
  register_autograd();
  register_conjugate();
  register_negative();
  register_sparse();
  register_nested();
  register_quantized();
  register_fallbacks();
  return true;
}();

}  // namespace

}  // namespace sim::registrations
