// Convolutions, whose algorithm PyTorch chooses by device type. It has no choice for this device, so the host's is taken.
//
// Contract held: ATen/native/Convolution.cpp, check_input_same_type_as_parameters, for an input on the device (cuDNN's case). An
// input on the CPU is left to that file, which chooses a CPU algorithm and its check.
#include "sim.h"

#include <torch/library.h>

#include <string>

namespace sim {

namespace {

// A tensor type as PyTorch's Python layer writes CUDA's ("CUDAFloatType") in errors (torch/csrc/Exceptions.cpp).
std::string type_name(const at::Tensor& tensor) {
  return std::string(is_sim(tensor) ? "torch.cuda." : "torch.") + at::toString(tensor.scalar_type()) + "Tensor";
}

void check_type(const at::Tensor& input, const at::Tensor& other, const char* name) {
  TORCH_CHECK(
      !other.defined() || input.options().type_equal(other.options()), "Input type (", type_name(input), ") and ", name, " type (",
      type_name(other), ") should be the same");
}

// A message of PyTorch with its tensor types replaced by their Python names.
std::string with_python_type_names(std::string message, c10::ArrayRef<at::Tensor> tensors) {
  for (const auto& tensor : tensors) {
    if (!tensor.defined()) {
      continue;
    }
    const auto given = tensor.toString();
    for (auto at = message.find(given); at != std::string::npos; at = message.find(given)) {
      message.replace(at, given.size(), type_name(tensor));
    }
  }
  return message;
}

void convolution(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const auto* arguments = stack->data() + stack->size() - op.schema().arguments().size();
  const auto input = arguments[0].toTensor(), weight = arguments[1].toTensor();
  const auto bias = arguments[2].isTensor() ? arguments[2].toTensor() : at::Tensor();
  if (is_sim(input)) {
    check_type(input, weight, "weight");
    check_type(input, bias, "bias");
    run_on_host(op, keys, stack);
    return;
  }
  try {
    run_composite(op, keys, stack);
  } catch (const c10::Error& error) {
    TORCH_CHECK(false, with_python_type_names(error.what_without_backtrace(), {input, weight, bias}));
  }
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("convolution", torch::CppFunction::makeFromBoxedFunction<&convolution>());
  library.impl("convolution_backward", torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
}

}  // namespace sim
