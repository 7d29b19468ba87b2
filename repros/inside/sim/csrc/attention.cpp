// Attention, whose algorithm PyTorch chooses by device type: the host's fused one where the host would take it, otherwise the "math"
// one (gpu_choices.cpp), which is made of operators. So the results are the CPU's, to the last bit.
//
// Contract held: ATen/native/transformers/attention.cpp, scaled_dot_product_attention, for tensors on the CPU. What it would refuse, and
// what looks at each operator (wrapped tensors, Python's dispatch modes), is left to that file.
#include "sim.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>
#include <limits>
#include <typeinfo>
#include <vector>

namespace sim {

namespace {

constexpr int64_t kFlash = 1;  // ATen/SDPBackend.h

using Values = std::vector<c10::IValue>;

// The CPU's fused kernel has a name of its own from 2.3; before 2.1 there is none.
SIM_OPTIONAL<c10::OperatorHandle> fused_host_attention() {
  for (const char* name : {"aten::_scaled_dot_product_flash_attention_for_cpu", "aten::_scaled_dot_product_flash_attention"}) {
    const auto op = c10::Dispatcher::singleton().findSchema({name, ""});
    if (op.has_value() && op->hasKernelForDispatchKey(c10::DispatchKey::CPU)) {
      return *op;
    }
  }
  return {};
}

// A tensor with bytes, and not a wrapper around one.
bool is_plain(const at::Tensor& tensor) {
  const auto* impl = tensor.unsafeGetTensorImpl();
  return is_sim(tensor) && typeid(*impl) == typeid(c10::TensorImpl) && !impl->key_set().has(c10::DispatchKey::Python);
}

// query, key, value and the mask, if there is one
bool are_accepted(const Values& arguments) {
  const auto& query = arguments[0].toTensor();
  const bool alike = std::all_of(arguments.begin(), arguments.begin() + 3, [&](const c10::IValue& each) {
    return is_plain(each.toTensor()) && each.toTensor().device() == query.device() &&
        each.toTensor().scalar_type() == query.scalar_type();
  });
  if (!alike || arguments[3].isNone() || !arguments[3].toTensor().defined()) {
    return alike;
  }
  const auto& mask = arguments[3].toTensor();
  const bool is_causal = arguments[5].toBool();
  return is_plain(mask) && mask.device() == query.device() && !is_causal &&
      (mask.scalar_type() == at::kBool || mask.scalar_type() == query.scalar_type());
}

bool host_takes_fused(const Values& arguments) {
  const at::AutoDispatchBelowADInplaceOrView below;
  Values question = arguments;
  for (auto& each : question) {
    if (each.isTensor() && each.toTensor().defined()) {
      const auto given = each.toTensor();
      each = host_alias(given).set_requires_grad(given.requires_grad());
    }
  }
  c10::Dispatcher::singleton().findSchemaOrThrow("aten::_fused_sdp_choice", "").callBoxed(question);
  return question.front().toInt() == kFlash;
}

// Some versions take it for inputs without a batch, too.
bool is_unbatched(const at::Tensor& query) {
  return query.dim() == 3;
}

// Adds -inf where a mask of bools is false.
at::Tensor to_summand(const at::Tensor& mask, const at::Tensor& query) {
  if (mask.scalar_type() != at::kBool) {
    return mask;
  }
  return at::zeros_like(mask, query.options()).masked_fill_(mask.logical_not(), -std::numeric_limits<double>::infinity());
}

void attention(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  Values arguments(stack->end() - static_cast<std::ptrdiff_t>(schema.arguments().size()), stack->end());
  const bool is_watched = c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::Python);
  if (is_watched || !are_accepted(arguments) || !host_takes_fused(arguments)) {
    run_composite(op, keys, stack);
    return;
  }
  torch::jit::drop(*stack, arguments.size());
  if (arguments[3].isTensor() && arguments[3].toTensor().defined()) {
    arguments[3] = to_summand(arguments[3].toTensor(), arguments[0].toTensor());
  }
  const bool unbatched = is_unbatched(arguments[0].toTensor());
  for (size_t i = 0; unbatched && i < 4; ++i) {
    if (arguments[i].isTensor() && arguments[i].toTensor().defined() && is_unbatched(arguments[i].toTensor())) {
      arguments[i] = arguments[i].toTensor().unsqueeze(0);
    }
  }
  const auto fused = *fused_host_attention();
  Values given;
  for (const auto& parameter : fused.schema().arguments()) {
    const auto at = schema.argumentIndexWithName(parameter.name());
    given.push_back(at.has_value() ? arguments[static_cast<size_t>(*at)] : *parameter.default_value());
  }
  fused.callBoxed(given);
  stack->push_back(unbatched ? c10::IValue(given.front().toTensor().squeeze(0)) : given.front());
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, AutogradCUDA, library) {
  if (fused_host_attention().has_value()) {
    library.impl("scaled_dot_product_attention", torch::CppFunction::makeFromBoxedFunction<&attention>());
  }
}

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  if (fused_host_attention().has_value()) {
    library.impl("scaled_dot_product_attention", torch::CppFunction::makeFromBoxedFunction<&attention>());
  }
}

}  // namespace sim
