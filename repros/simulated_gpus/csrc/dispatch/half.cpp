// float16 where the CPU has no kernel for it: before PyTorch 2.4 it lacks most of those that every GPU has.
//
// Contract held: an operator that CUDA runs in float16 runs. It is computed in float32 and rounded, as CUDA's kernels
// do inside. CUDA's softmax reads float16 and writes float32 at once (ATen/native/SoftMax.cpp, `half_to_float`); the
// CPU's refuses that.
#include "dispatch/half.h"

#include "dispatch/fallback.h"
#include "torch_versions.h"

#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace sim {

namespace {

bool is_half(const at::Tensor& tensor) {
  return tensor.defined() && tensor.scalar_type() == at::kHalf;
}

bool has_half(const c10::IValue& value) {
  if (value.isTensor()) {
    return is_half(value.toTensor());
  }
  if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorList()) {
      if (is_half(tensor)) {
        return true;
      }
    }
  }
  return false;
}

// The float32 tensors that replace float16 ones in one call.
class Widened {
 public:
  c10::IValue wide(const c10::IValue& value, const c10::Argument& argument) {
    const bool written = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    if (value.isTensor()) {
      return wide(value.toTensor(), written);
    }
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorList()) {
        list.push_back(wide(tensor, written));
      }
      return list;
    }
    const bool is_type = argument.name() == "dtype" && value.isInt();
    return is_type && value.toScalarType() == at::kHalf ? c10::IValue(at::kFloat) : value;
  }

  void write_back() {
    for (const auto& [half, wide] : written_) {
      if (half.layout() == c10::kStrided) {
        half.resize_(wide.sizes());
      }
      half.copy_(wide);
    }
  }

  c10::IValue narrow(const c10::IValue& value) const {
    if (value.isTensor()) {
      return narrow(value.toTensor());
    }
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorList()) {
        list.push_back(narrow(tensor));
      }
      return list;
    }
    return value;
  }

 private:
  at::Tensor wide(const at::Tensor& tensor, bool written) {
    if (!is_half(tensor)) {
      return tensor;
    }
    auto copy = tensor.to(at::kFloat);
    if (written) {
      written_.emplace_back(tensor, copy);
    }
    return copy;
  }

  at::Tensor narrow(const at::Tensor& tensor) const {
    for (const auto& [half, wide] : written_) {
      if (wide.is_same(tensor)) {
        return half;
      }
    }
    return tensor.defined() && tensor.scalar_type() == at::kFloat ? tensor.to(at::kHalf) : tensor;
  }

  std::vector<std::pair<at::Tensor, at::Tensor>> written_;
};

}  // namespace

void call_host_kernel(const c10::OperatorHandle& op, c10::DispatchKey key, torch::jit::Stack* stack) {
  // Below autograd: the aliases are plain memory, and history is kept on the device tensors above.
  const at::AutoDispatchBelowADInplaceOrView below;
  const c10::DispatchKeySet keys(key);
  const auto& parameters = op.schema().arguments();
  const auto begin = stack->end() - static_cast<std::ptrdiff_t>(parameters.size());
  if (std::none_of(begin, stack->end(), has_half)) {
    op.redispatchBoxed(keys, stack);
    return;
  }
  const std::vector<c10::IValue> arguments(
      begin, stack->end());  // a kernel removes them from the stack, even if it throws
  const auto below_arguments = stack->size() - parameters.size();
  try {
    op.redispatchBoxed(keys, stack);
  } catch (const c10::Error& error) {
    const char* words = error.what_without_backtrace();
    if (std::strstr(words, "not implemented for 'Half'") == nullptr &&
        std::strstr(words, "not implemented for Half") == nullptr) {
      throw;
    }
    Widened call;
    stack->resize(below_arguments);
    for (size_t i = 0; i < arguments.size(); ++i) {
      stack->push_back(call.wide(arguments[i], parameters[i]));
    }
    op.redispatchBoxed(keys, stack);
    call.write_back();
    for (size_t i = below_arguments; i < stack->size(); ++i) {
      (*stack)[i] = call.narrow((*stack)[i]);
    }
  }
}

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

}  // namespace sim
