// What PyTorch asks CUDA alone: which algorithm to take. For attention that attention.cpp leaves to PyTorch it is always the "math"
// one, which is made of operators; the CTC loss is not cuDNN's.
//
// Contracts held: ATen/native/transformers/attention.cpp asks the device for its choice, and for a fused one it calls CUDA's fused
// kernels, of which the host has none with CUDA's signature. ATen/native/LossCTC.cpp asks `_use_cudnn_ctc_loss`. The files are compiled in
// the order of their names, so these kernels replace those that composites.cpp has registered.
#include "sim.h"

#if SIM_TORCH_AT_LEAST(2, 4)
#include <ATen/native/transformers/attention.h>
#else
#include <ATen/native/DispatchStub.h>

// The header is not part of these versions' wheels.
namespace at::native {
#if SIM_TORCH_AT_LEAST(2, 1)
using fused_sdp_choice_fn =
    int64_t (*)(const Tensor&, const Tensor&, const Tensor&, const c10::optional<Tensor>&, double, bool, c10::optional<double>);
#else
using fused_sdp_choice_fn =
    int64_t (*)(const Tensor&, const Tensor&, const Tensor&, const c10::optional<Tensor>&, double, bool);
#endif
DECLARE_DISPATCH(fused_sdp_choice_fn, _fused_sdp_choice_stub);
}  // namespace at::native
#endif
#include <torch/library.h>

namespace sim {

namespace {

constexpr int64_t kMath = 0;  // ATen/SDPBackend.h

template <class... Rest>
int64_t choose_math(
    const at::Tensor& /*query*/, const at::Tensor& /*key*/, const at::Tensor& /*value*/, const SIM_OPTIONAL<at::Tensor>& /*mask*/,
    double /*dropout*/, bool /*is_causal*/, Rest... /*rest*/) {
  return kMath;
}

void push_math(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
  torch::jit::drop(*stack, op.schema().arguments().size());
  torch::jit::push(*stack, kMath);
}

void push_false(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
  torch::jit::drop(*stack, op.schema().arguments().size());
  torch::jit::push(*stack, false);
}

const bool choice_registered = [] {
  at::native::_fused_sdp_choice_stub.set_cuda_dispatch_ptr(&choose_math);
  return true;
}();

}  // namespace

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("_fused_sdp_choice", torch::CppFunction::makeFromBoxedFunction<&push_math>());
  for (const char* name :
       {"_use_cudnn_ctc_loss", "_use_cudnn_ctc_loss.Tensor", "_use_miopen_ctc_loss", "_use_miopen_ctc_loss.Tensor"}) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&push_false>());
  }
}

}  // namespace sim
