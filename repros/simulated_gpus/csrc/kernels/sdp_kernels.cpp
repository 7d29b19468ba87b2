// The fused attention of GPUs, "memory efficient" and flash, computed by the host's fused kernel: the results are the
// CPU's, to the last bit. sdp_choice.cpp says when PyTorch takes them. Both are compiled after composites.cpp, whose
// kernels they replace.
//
// Contract held: ATen/native/transformers/cuda/attention.cu and attention_backward.cu for dense tensors without
// dropout: the shapes, strides and types of the results (those that a fake tensor has in torch/_meta_registrations.py,
// too), and where a causal mask lies.
#include "dispatch/placement.h"
#include "kernels/kernels.h"
#include "kernels/sdp.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/full.h>

#include <limits>
#include <map>
#include <string>
#include <vector>

namespace sim::sdp_kernels {

namespace {

constexpr const char* kForward = "aten::_scaled_dot_product_flash_attention_for_cpu";
constexpr const char* kBackward = "aten::_scaled_dot_product_flash_attention_for_cpu_backward";
constexpr int64_t kRowsOfABlock = 32;  // "memory efficient" attention pads its log-sum-exp to whole blocks of queries

enum CausalMask : int64_t {
  kNone,
  kUpperLeft,
  kLowerRight
};  // ATen/native/transformers/cuda/sdp_utils.h, CustomMaskType

// Arguments by the host operator's names; query, key and value by batch, head, row and column.
using Values = std::map<std::string, c10::IValue>;

const at::Tensor& tensor_of(const Values& values, const char* name) {
  return values.at(name).toTensor();
}

bool is_given(const c10::IValue& value) {
  return value.isTensor() ? value.toTensor().defined() : !value.isNone();
}

// Lets the host mask what CUDA's kernel does. The host's own causal mask begins at the upper left.
void set_causal_mask(Values& values, int64_t kind) {
  const auto& query = tensor_of(values, "query");
  const auto queries = query.size(2), keys = tensor_of(values, "key").size(2);
  values["is_causal"] = kind != kNone;
  if (kind == kLowerRight && queries != keys) {
    TORCH_CHECK_NOT_IMPLEMENTED(
        queries < keys, "Simulated GPUs have no fused attention with a causal mask and more queries than keys.");
    const auto mask =
        at::full({queries, keys}, -std::numeric_limits<double>::infinity(), query.options()).triu(keys - queries + 1);
    const auto given = values.find("attn_mask");
    values["attn_mask"] = given != values.end() && is_given(given->second) ? given->second.toTensor() + mask : mask;
    values["is_causal"] = false;
  }
}

// The arguments, after CUDA's placement check.
Values take_arguments(const c10::FunctionSchema& schema, torch::jit::Stack* stack) {
  const auto begin = stack->end() - static_cast<std::ptrdiff_t>(schema.arguments().size());
  const std::vector<c10::IValue> given(begin, stack->end());
  stack->erase(begin, stack->end());
  check_placement(schema, given);
  Values values;
  for (size_t i = 0; i < given.size(); ++i) {
    const auto& name = schema.arguments()[i].name();
    values[name == "attn_bias" || name == "bias" ? "attn_mask" : name == "grad_out_" ? "grad_out" : name] = given[i];
  }
  TORCH_CHECK_NOT_IMPLEMENTED(
      values.at("dropout_p").toDouble() == 0,
      "Simulated GPUs have no fused attention with dropout. Allow the math algorithm, as PyTorch's defaults do.");
  return values;
}

// The same for operators that take query, key and value by batch, row, head and column.
Values take_arguments_by_rows(const c10::FunctionSchema& schema, torch::jit::Stack* stack) {
  auto values = take_arguments(schema, stack);
  for (const char* name : {"cu_seqlens_q", "cu_seqlens_k", "seqlen_k", "window_size", "causal_diagonal"}) {
    const auto found = values.find(name);
    TORCH_CHECK_NOT_IMPLEMENTED(
        found == values.end() || !is_given(found->second), "Simulated GPUs have no fused attention with `", name, "`.");
  }
  for (const char* name : {"query", "key", "value", "out", "grad_out"}) {
    const auto found = values.find(name);
    if (found != values.end()) {
      found->second = found->second.toTensor().transpose(1, 2);
    }
  }
  set_causal_mask(values, values.at("custom_mask_type").toInt());
  return values;
}

torch::jit::Stack call_host(const char* name, const Values& values) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
  torch::jit::Stack stack;
  for (const auto& parameter : op.schema().arguments()) {
    const auto found = values.find(parameter.name());
    const bool given = found != values.end() && is_given(found->second);
    stack.push_back(given ? found->second : parameter.default_value().value_or(c10::IValue(at::Tensor())));
  }
  op.callBoxed(stack);
  return stack;
}

at::Tensor no_random_state(const at::Tensor& model) {
  return at::empty({}, model.options().dtype(at::kLong));
}

// The tensor in other strides, those of `permuted` with its second and third dimension exchanged. Flash attention's
// results lie like the tensors that they belong to, the other's by batch, row, head and column.
at::Tensor laid_out(const at::Tensor& tensor, const at::Tensor& permuted) {
  const auto expected = permuted.transpose(1, 2);
  return tensor.strides() == expected.strides()
      ? tensor
      : at::empty_strided(tensor.sizes(), expected.strides(), tensor.options()).copy_(tensor);
}

at::Tensor laid_out_like(const at::Tensor& tensor, const at::Tensor& model) {
  return laid_out(tensor, at::empty_like(model.transpose(1, 2), model.options().device(at::kMeta)));
}

at::Tensor laid_out_by_rows(const at::Tensor& tensor) {
  return laid_out(tensor, at::empty(tensor.transpose(1, 2).sizes(), tensor.options().device(at::kMeta)));
}

void flash(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
  auto values = take_arguments(op.schema(), stack);
  set_causal_mask(values, values.at("is_causal").toBool() ? kLowerRight : kNone);
  const auto &query = tensor_of(values, "query"), &key = tensor_of(values, "key");
  const auto results = call_host(kForward, values);
  const auto no_mask = at::empty({0}, query.options());
  torch::jit::push(
      *stack, laid_out_like(results[0].toTensor(), query), results[1].toTensor().contiguous(), at::Tensor(),
      at::Tensor(), query.size(2), key.size(2), no_random_state(query), no_random_state(query), no_mask);
}

// Output and log-sum-exp.
std::pair<at::Tensor, at::Tensor> efficient_results(const Values& values) {
  const auto& query = tensor_of(values, "query");
  const auto results = call_host(kForward, values);
  const auto rows = values.at("compute_log_sumexp").toBool() ? query.size(2) : 0;
  const auto padded = (rows + kRowsOfABlock - 1) / kRowsOfABlock * kRowsOfABlock;
  const auto sums = at::empty({query.size(0), query.size(1), padded}, query.options().dtype(at::kFloat));
  if (rows > 0) {
    sums.narrow(2, 0, rows).copy_(results[1].toTensor());
  }
  return {laid_out_by_rows(results[0].toTensor()), sums};
}

void efficient(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
  const auto values = take_arguments(op.schema(), stack);
  const auto& query = tensor_of(values, "query");
  const auto [output, sums] = efficient_results(values);
  torch::jit::push(*stack, output, sums, no_random_state(query), no_random_state(query));
}

void efficient_by_rows(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
  const auto values = take_arguments_by_rows(op.schema(), stack);
  const auto& query = tensor_of(values, "query");
  const auto [output, sums] = efficient_results(values);
  torch::jit::push(
      *stack, output.transpose(1, 2), sums, no_random_state(query), no_random_state(query), query.size(2),
      tensor_of(values, "key").size(2));
}

bool asks_for_warning() {
  const auto& context = at::globalContext();
  return context.deterministicAlgorithms() && context.deterministicAlgorithmsWarnOnly();
}

constexpr const char* kNotDeterministic =
    " defaults to a non-deterministic algorithm. To explicitly enable determinism call "
    "torch.use_deterministic_algorithms(True, warn_only=False).";

// The gradients of query, key and value.
torch::jit::Stack gradients(Values values) {
  values["logsumexp"] = tensor_of(values, "logsumexp").narrow(2, 0, tensor_of(values, "query").size(2)).clone();
  return call_host(kBackward, values);
}

void flash_backward(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
  auto values = take_arguments(op.schema(), stack);
  set_causal_mask(values, values.at("is_causal").toBool() ? kLowerRight : kNone);
  if (asks_for_warning()) {
    TORCH_WARN_ONCE("Flash Attention", kNotDeterministic);
  }
  const auto found = gradients(values);
  torch::jit::push(
      *stack, laid_out_like(found[0].toTensor(), tensor_of(values, "query")),
      laid_out_like(found[1].toTensor(), tensor_of(values, "key")),
      laid_out_like(found[2].toTensor(), tensor_of(values, "value")));
}

std::vector<at::Tensor> efficient_gradients(const Values& values, bool of_mask) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      !of_mask, "Simulated GPUs have no fused attention that trains its mask. Allow the math algorithm.");
  if (asks_for_warning()) {
    TORCH_WARN_ONCE("Memory Efficient attention", kNotDeterministic);
  }
  const auto found = gradients(values);
  return {
      laid_out_by_rows(found[0].toTensor()), laid_out_by_rows(found[1].toTensor()),
      laid_out_by_rows(found[2].toTensor())};
}

void efficient_backward(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
  const auto values = take_arguments(op.schema(), stack);
  const auto found = efficient_gradients(values, values.at("grad_input_mask").toBoolList()[3]);
  torch::jit::push(*stack, found[0], found[1], found[2], at::Tensor());
}

void efficient_backward_by_rows(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
  const auto values = take_arguments_by_rows(op.schema(), stack);
  const auto found = efficient_gradients(values, values.at("bias_requires_grad").toBool());
  torch::jit::push(*stack, found[0].transpose(1, 2), found[1].transpose(1, 2), found[2].transpose(1, 2), at::Tensor());
}

}  // namespace

bool has_fused_host_attention() {
  return c10::Dispatcher::singleton().findSchema({kForward, ""}).has_value();
}

void register_kernels(Registrar& registrar) {
  if (has_fused_host_attention()) {
    registrar.impl("_scaled_dot_product_flash_attention", c10::KernelFunction::makeFromBoxedFunction<&flash>());
    registrar.impl(
        "_scaled_dot_product_flash_attention_backward", c10::KernelFunction::makeFromBoxedFunction<&flash_backward>());
    registrar.impl("_scaled_dot_product_efficient_attention", c10::KernelFunction::makeFromBoxedFunction<&efficient>());
    registrar.impl(
        "_scaled_dot_product_efficient_attention_backward",
        c10::KernelFunction::makeFromBoxedFunction<&efficient_backward>());
    registrar.impl("_efficient_attention_forward", c10::KernelFunction::makeFromBoxedFunction<&efficient_by_rows>());
    registrar.impl(
        "_efficient_attention_backward", c10::KernelFunction::makeFromBoxedFunction<&efficient_backward_by_rows>());
  }
}

}  // namespace sim::sdp_kernels
