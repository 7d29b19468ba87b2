// Upcasts for element types that CUDA's kernels have and the CPU's lack: float16 (most kernels before PyTorch 2.4),
// complex32, bfloat16 and bool in a few.
//
// Contract held: what CUDA runs in such a type runs. It is computed in a wider one and rounded, as CUDA's kernels do
// inside; what CUDA refuses was refused before (types.cpp). cuFFT takes float16 for sizes that are powers of two.
#include "dispatch/upcast.h"

#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace sim::upcast {

namespace {

struct Widening {
  at::ScalarType narrow;
  at::ScalarType wide;
};
using Widenings = c10::ArrayRef<Widening>;
constexpr Widening kHalves[] = {{at::kHalf, at::kFloat}, {at::kComplexHalf, at::kComplexFloat}};
constexpr Widening kBFloat16[] = {{at::kBFloat16, at::kFloat}};
constexpr Widening kBool[] = {{at::kBool, at::kByte}};

bool is_narrow(at::ScalarType type) {
  return type == at::kHalf || type == at::kComplexHalf || type == at::kBFloat16 || type == at::kBool;
}

bool has_narrow(const c10::IValue& value) {
  if (value.isTensor()) {
    return value.toTensor().defined() && is_narrow(value.toTensor().scalar_type());
  }
  if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorList()) {
      if (tensor.defined() && is_narrow(tensor.scalar_type())) {
        return true;
      }
    }
  }
  return false;
}

// The types to replace in a call that the CPU refused in these words; none if it refused for another reason.
Widenings widenings_for(const char* words) {
  const auto names = [&](const char* type) {
    const std::string lacks = "not implemented for ";
    const std::string fft_lacks = "MKL FFT doesn't support tensors of type: ";
    return std::strstr(words, (lacks + "'" + type + "'").c_str()) != nullptr ||
        std::strstr(words, (lacks + type).c_str()) != nullptr ||
        std::strstr(words, (fft_lacks + type).c_str()) != nullptr;
  };
  if (names("Half") || names("ComplexHalf")) {
    return kHalves;
  }
  if (names("BFloat16")) {
    return kBFloat16;
  }
  return names("Bool") ? Widenings(kBool) : Widenings();
}

bool is_power_of_two(int64_t size) {
  return size > 0 && (size & (size - 1)) == 0;
}

// CuFFTPlanCache.h's check of a transform in float16. The last size of one to real numbers is an argument.
void check_fft_sizes(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments, const char* precision) {
  if (schema.name().rfind("aten::_fft_", 0) != 0) {
    return;
  }
  std::vector<int64_t> sizes;
  for (const int64_t dim : arguments[1].toIntVector()) {
    sizes.push_back(arguments[0].toTensor().size(dim));
  }
  if (schema.name() == "aten::_fft_c2r" && !sizes.empty()) {
    sizes.back() = arguments[3].toInt();
  }
  TORCH_CHECK(
      std::all_of(sizes.begin(), sizes.end(), &is_power_of_two),
      "cuFFT only supports dimensions whose sizes are powers of two when computing in ", precision,
      " precision, but got a signal size of", c10::IntArrayRef(sizes));
}

// The tensors of wider types that replace those of narrow ones in one call.
class Widened {
 public:
  explicit Widened(Widenings types) : types_(types) {}

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
    return is_type ? c10::IValue(wide(value.toScalarType())) : value;
  }

  void write_back() {
    for (const auto& [narrow, wide] : written_) {
      if (narrow.layout() == c10::kStrided) {
        narrow.resize_(wide.sizes());
      }
      narrow.copy_(wide);
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
  at::ScalarType wide(at::ScalarType type) const {
    const auto* found =
        std::find_if(types_.begin(), types_.end(), [&](const Widening& each) { return each.narrow == type; });
    return found == types_.end() ? type : found->wide;
  }

  at::Tensor wide(const at::Tensor& tensor, bool written) {
    if (!tensor.defined() || wide(tensor.scalar_type()) == tensor.scalar_type()) {
      return tensor;
    }
    auto copy = tensor.to(wide(tensor.scalar_type()));
    if (written) {
      written_.emplace_back(tensor, copy);
    }
    return copy;
  }

  at::Tensor narrow(const at::Tensor& tensor) const {
    for (const auto& [narrow, wide] : written_) {
      if (wide.is_same(tensor)) {
        return narrow;
      }
    }
    for (const auto& each : types_) {
      if (tensor.defined() && tensor.scalar_type() == each.wide) {
        return tensor.to(each.narrow);
      }
    }
    return tensor;
  }

  Widenings types_;
  std::vector<std::pair<at::Tensor, at::Tensor>> written_;
};

}  // namespace

void call_host_kernel(const c10::OperatorHandle& op, c10::DispatchKey key, torch::jit::Stack* stack) {
  // Below autograd: the aliases are plain memory, and history is kept on the device tensors above.
  const at::AutoDispatchBelowADInplaceOrView below;
  const c10::DispatchKeySet keys(key);
  const auto& parameters = op.schema().arguments();
  const auto begin = stack->end() - static_cast<std::ptrdiff_t>(parameters.size());
  if (std::none_of(begin, stack->end(), has_narrow)) {
    op.redispatchBoxed(keys, stack);
    return;
  }
  const std::vector<c10::IValue> arguments(
      begin, stack->end());  // a kernel removes them from the stack, even if it throws
  const auto below_arguments = stack->size() - parameters.size();
  try {
    op.redispatchBoxed(keys, stack);
  } catch (const c10::Error& error) {
    const auto types = widenings_for(error.what_without_backtrace());
    if (types.empty()) {
      throw;
    }
    check_fft_sizes(op.schema(), arguments, types[0].narrow == at::kBFloat16 ? "bfloat16" : "half");
    Widened call(types);
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

}  // namespace sim::upcast
