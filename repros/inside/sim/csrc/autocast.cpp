// Autocast on the simulated accelerator: the same as CUDA's, operator by operator.
//
// Contract held: ATen/autocast_mode.cpp. The dispatcher tells which operators autocast affects: those with a kernel for
// CUDA's autocast, which every build of PyTorch has. Each follows one of the policies below; the tables list the operators
// of the smaller ones, and the rest compute in float32. test_autocast.py compares the tables with the lists of each PyTorch.
#include "sim.h"

#if SIM_HAS_AUTOCAST

#include <ATen/autocast_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <string>
#include <unordered_set>

namespace sim {

namespace {

using Names = std::unordered_set<std::string>;

const Names& lower_precision() {
  static const Names names{
      "_convolution", "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
      "convolution", "prelu", "addmm", "addmv", "addr", "matmul", "einsum", "mm", "mv", "linalg_vecdot", "linear", "addbmm",
      "baddbmm", "bmm", "chain_matmul", "linalg_multi_dot", "_thnn_fused_lstm_cell", "_thnn_fused_gru_cell", "lstm_cell",
      "gru_cell", "rnn_tanh_cell", "rnn_relu_cell", "_scaled_dot_product_flash_attention", "scaled_dot_product_attention"};
  return names;
}

// Operators with a result type: float32, unless the caller passes one.
const Names& result_in_float32() {
  static const Names names{"prod", "softmax", "log_softmax", "cumprod", "cumsum", "linalg_vector_norm", "linalg_matrix_norm",
                           "sum"};
  return names;
}

// All arguments in the widest type among them.
const Names& widest() {
  static const Names names{"addcdiv", "addcmul", "atan2", "bilinear", "cross", "dot", "vdot", "grid_sampler", "index_put",
                           "tensordot", "scatter_add", "cat", "stack"};
  return names;
}

std::string bare_name(const c10::OperatorName& name) {
  return name.name.substr(std::string("aten::").size());
}

bool is_castable(const at::Tensor& tensor) {
  return at::autocast::is_eligible(tensor, kDevice);
}

c10::IValue cast(const c10::IValue& value, at::ScalarType type) {
  using at::autocast::cached_cast;
  if (value.isTensor()) {
    return cached_cast(type, value.toTensor(), kDevice);
  }
  if (value.isTensorList()) {
    const auto tensors = value.toTensorVector();
    // With a vector, overload resolution would pick the template that casts nothing.
    return cached_cast(type, at::TensorList(tensors), kDevice);
  }
  return value;
}

at::ScalarType widest_type(c10::ArrayRef<c10::IValue> arguments) {
  auto type = at::autocast::get_lower_precision_fp_from_device_type(kDevice);
  const auto widen = [&](const at::Tensor& tensor) {
    if (is_castable(tensor) && tensor.scalar_type() == at::kFloat) {
      type = at::kFloat;
    }
  };
  for (const auto& argument : arguments) {
    if (argument.isTensor()) {
      widen(argument.toTensor());
    } else if (argument.isTensorList()) {
      for (const at::Tensor& tensor : argument.toTensorList()) {
        widen(tensor);
      }
    }
  }
  return type;
}

c10::OperatorHandle norm_with_dtype(const c10::OperatorHandle& norm) {
  const bool whole = norm.operator_name().overload_name == "Scalar";
  return c10::Dispatcher::singleton().findSchemaOrThrow("aten::norm", whole ? "ScalarOpt_dtype" : "ScalarOpt_dim_dtype");
}

void run_with_casts(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  const size_t begin = stack->size() - schema.arguments().size();
  const auto arguments = c10::ArrayRef<c10::IValue>(*stack).slice(begin);
  const c10::impl::ExcludeDispatchKeyGuard done(c10::DispatchKey::AutocastPrivateUse1);

  const auto name = bare_name(op.operator_name());
  if (name == "binary_cross_entropy") {
    // CUDA's autocast refuses it, with a message that names the alternative.
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::AutocastCUDA), stack);
    return;
  }
  if (name == "norm") {
    const auto type = arguments[0].toTensor().scalar_type();
    torch::jit::push(*stack, is_castable(arguments[0].toTensor()) ? at::kFloat : type);
    norm_with_dtype(op).callBoxed(stack);
    return;
  }
  if (result_in_float32().count(name) != 0) {
    const auto position = schema.argumentIndexWithName("dtype");
    auto& type = (*stack)[begin + static_cast<size_t>(*position)];
    if (type.isNone() && is_castable(arguments[0].toTensor())) {
      type = at::kFloat;
    }
  } else {
    const auto type = lower_precision().count(name) != 0 ? at::autocast::get_lower_precision_fp_from_device_type(kDevice)
        : widest().count(name) != 0                      ? widest_type(arguments)
                                                         : at::kFloat;
    for (size_t i = begin; i < stack->size(); ++i) {
      (*stack)[i] = cast((*stack)[i], type);
    }
  }
  op.callBoxed(stack);
}

}  // namespace

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, library) {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findSchema(name);
    if (op.has_value() && op->hasKernelForDispatchKey(c10::DispatchKey::AutocastCUDA)) {
      const auto full = name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
      library.impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<&run_with_casts>());
    }
  }
}

}  // namespace sim

#endif
