// Convolutions, whose algorithm PyTorch chooses by device type. It has no choice for this device, so the host's is
// taken.
//
// `convolution` itself is PyTorch's own: it calls `_convolution`, and a tracer records that one alone.
//
// Contracts held: in ATen/native/Convolution.cpp, check_input_same_type_as_parameters, and select_conv_backend for an
// input on the device: errors name the kernel that it chooses with cuDNN. An input on the CPU is left to that file,
// which chooses a CPU algorithm and its check.
#include "dispatch/fallback.h"
#include "dispatch/placement.h"
#include "kernels/kernels.h"
#include "runtime/memory.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/op_registration/adaption.h>

#include <string>

namespace sim::convolution {

namespace {

// A tensor type as PyTorch's Python layer writes CUDA's ("CUDAFloatType") in errors (torch/csrc/Exceptions.cpp).
std::string type_name(const at::Tensor& tensor) {
  return std::string(is_sim(tensor) ? "torch.cuda." : "torch.") + at::toString(tensor.scalar_type()) + "Tensor";
}

void check_type(const at::Tensor& input, const at::Tensor& other, const char* name) {
  TORCH_CHECK(
      !other.defined() || input.options().type_equal(other.options()), "Input type (", type_name(input), ") and ", name,
      " type (", type_name(other), ") should be the same");
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

// The kernel that CUDA calls, and by whose name it reports an error. cuDNN's adds the bias afterwards.
void check_devices(
    const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, bool transposed, int64_t groups) {
  const bool by_channel =
      !transposed && groups > 1 && input.dim() >= 4 && input.size(1) == groups && weight.size(0) % input.size(1) == 0;
  const char* method = transposed ? "wrapper_CUDA__cudnn_convolution_transpose" : "wrapper_CUDA__cudnn_convolution";
  if (by_channel) {
    method = input.dim() == 4 ? "wrapper_CUDA___conv_depthwise2d" : "wrapper_CUDA__conv_depthwise3d";
  }
  Placement common;
  c10::impl::check_and_update_common_device(common, input, method, "self");
  c10::impl::check_and_update_common_device(common, weight, method, "weight");
  if (by_channel && bias.defined()) {
    c10::impl::check_and_update_common_device(common, bias, method, "bias");
  }
  TORCH_CHECK(
      !bias.defined() || bias.device() == input.device(),
      "Expected all tensors to be on the same device, but found at least two devices, ", input.device(), " and ",
      bias.device(), "!");
}

void convolution(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const auto* arguments = stack->data() + stack->size() - op.schema().arguments().size();
  const auto input = arguments[0].toTensor(), weight = arguments[1].toTensor();
  const auto bias = arguments[2].isTensor() ? arguments[2].toTensor() : at::Tensor();
  if (is_sim(input)) {
    check_type(input, weight, "weight");
    check_type(input, bias, "bias");
    check_devices(input, weight, bias, arguments[6].toBool(), arguments[8].toInt());
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

void register_kernels(Registrar& registrar) {
  registrar.impl("_convolution", c10::KernelFunction::makeFromBoxedFunction<&convolution>());
  registrar.impl("convolution_backward", c10::KernelFunction::makeFromBoxedFunction<&run_on_host>());
}

}  // namespace sim::convolution
