// Whether PyTorch takes cuDNN's CTC loss, which it asks for CUDA alone: never.
//
// Contract held: ATen/native/LossCTC.cpp asks `_use_cudnn_ctc_loss`.

#include "kernels/kernels.h"

#include <ATen/core/dispatch/Dispatcher.h>

namespace sim::ctc_loss {

namespace {

void push_false(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
  torch::jit::drop(*stack, op.schema().arguments().size());
  torch::jit::push(*stack, false);
}

}  // namespace

void register_kernels(Registrar& registrar) {
  for (const char* name :
       {"_use_cudnn_ctc_loss", "_use_cudnn_ctc_loss.Tensor", "_use_miopen_ctc_loss", "_use_miopen_ctc_loss.Tensor"}) {
    registrar.impl(name, c10::KernelFunction::makeFromBoxedFunction<&push_false>());
  }
}

}  // namespace sim::ctc_loss
