// What PyTorch asks CUDA alone: whether to take cuDNN's CTC loss.
//
// Contract held: ATen/native/LossCTC.cpp asks `_use_cudnn_ctc_loss`. The files are compiled in the order of their
// names, so these kernels replace those that composites.cpp has registered.

#include <torch/library.h>

namespace sim {

namespace {

void push_false(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
  torch::jit::drop(*stack, op.schema().arguments().size());
  torch::jit::push(*stack, false);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  for (const char* name :
       {"_use_cudnn_ctc_loss", "_use_cudnn_ctc_loss.Tensor", "_use_miopen_ctc_loss", "_use_miopen_ctc_loss.Tensor"}) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&push_false>());
  }
}

}  // namespace sim
