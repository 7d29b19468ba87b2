// Softmax of float16 with a float32 result.
//
// Contract held: ATen/native/SoftMax.cpp, `half_to_float`. CUDA's kernel reads float16 and writes float32; the CPU's
// refuses that, so the input is converted first.
#include "kernels/softmax.h"

#include "dispatch/fallback.h"
#include "torch_versions.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>

namespace sim::softmax {

namespace {

bool is_half(const at::Tensor& tensor) {
  return tensor.defined() && tensor.scalar_type() == at::kHalf;
}

}  // namespace

void run_softmax(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  auto& self = torch::jit::peek(*stack, 0, 3);
  auto& half_to_float = torch::jit::peek(*stack, 2, 3);
  if (half_to_float.toBool() && is_half(self.toTensor())) {
    const at::AutoDispatchBelowADInplaceOrView below;
    self = self.toTensor().to(at::kFloat);
    half_to_float = false;
  }
  run_on_host(op, keys, stack);
}

void run_softmax_backward(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  auto& input_type = torch::jit::peek(*stack, 3, 4);
  auto &gradient = torch::jit::peek(*stack, 0, 4), &output = torch::jit::peek(*stack, 1, 4);
  const bool widens =
      !SIM_TORCH_AT_LEAST(2, 2) && is_half(gradient.toTensor());  // the CPU's kernel says "expected scalar type Float"
  const bool to_half = input_type.toScalarType() == at::kHalf && (widens || !is_half(gradient.toTensor()));
  if (widens) {
    const at::AutoDispatchBelowADInplaceOrView below;
    gradient = gradient.toTensor().to(at::kFloat);
    output = output.toTensor().to(at::kFloat);
  }
  if (to_half) {
    input_type = at::kFloat;
  }
  run_on_host(op, keys, stack);
  if (to_half) {
    const at::AutoDispatchBelowADInplaceOrView below;
    const auto half = torch::jit::pop(*stack).toTensor().to(at::kHalf);
    torch::jit::push(*stack, half);
  }
}

}  // namespace sim::softmax
