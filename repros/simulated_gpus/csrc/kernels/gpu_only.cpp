// Operators that PyTorch has for CUDA only, where training code reaches them: RMSNorm's derivative, products whose
// result has a wider type than their factors, and histograms of integers.
//
// Contracts held: ATen/native/layer_norm.cpp (`rms_norm_composite`, whose derivative this is) and native_functions.yaml
// (`_fused_rms_norm_backward`, from 2.9); ATen/native/cuda/Blas.cpp (`mm.dtype` and its kin, from 2.8) and
// ATen/native/cuda/SummaryOps.cu (`histc`), with their refusals of types.
// A reference implementation, written with operators on device tensors. Half types are computed in float32, as CUDA's
// kernels do.
#include "dispatch/fallback.h"
#include "dispatch/placement.h"
#include "kernels/kernels.h"
#include "torch_versions.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <array>
#include <string>
#include <tuple>
#include <vector>

namespace sim::gpu_only {

namespace {

bool is_half_type(c10::ScalarType type) {
  return type == at::kHalf || type == at::kBFloat16;
}

std::tuple<at::Tensor, at::Tensor> rms_norm_backward(
    const at::Tensor& grad, const at::Tensor& input, c10::IntArrayRef shape, const at::Tensor& rstd,
    const SIM_OPTIONAL<at::Tensor>& weight, std::array<bool, 2> wanted) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const auto type = is_half_type(input.scalar_type()) ? at::kFloat : input.scalar_type();
  const int64_t outer = input.dim() - static_cast<int64_t>(shape.size());
  std::vector<int64_t> leading, normalized, broadcast = input.sizes().vec();
  for (int64_t i = 0; i < input.dim(); ++i) {
    (i < outer ? leading : normalized).push_back(i);
    broadcast[static_cast<size_t>(i)] = i < outer ? input.size(i) : 1;
  }
  const auto scale = rstd.to(type).reshape(broadcast), from_above = grad.to(type);
  const auto scaled_input = input.to(type) * scale;
  const bool has_weight = weight.has_value() && weight->defined();
  at::Tensor of_input, of_weight;
  if (wanted[0]) {
    const auto through = has_weight ? from_above * weight->to(type) : from_above;
    of_input =
        ((through - scaled_input * (through * scaled_input).mean(normalized, true)) * scale).to(input.scalar_type());
  }
  if (wanted[1] && has_weight) {
    const auto each = from_above * scaled_input;
    of_weight = (leading.empty() ? each : each.sum(leading)).to(weight->scalar_type());
  }
  return {of_input, of_weight};
}

// mm, bmm, addmm and baddbmm with `out_dtype`, which follows the two factors.
void wide_product(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  auto arguments = torch::jit::pop(*stack, schema.arguments().size());
  check_placement(schema, arguments);
  const at::AutoDispatchBelowADInplaceOrView below;
  const auto at_type = static_cast<size_t>(*schema.argumentIndexWithName("out_dtype"));
  const auto wide = arguments[at_type].toScalarType();
  const auto given = arguments[at_type - 1].toTensor().scalar_type();
  TORCH_CHECK(arguments[at_type - 2].toTensor().scalar_type() == given, "input dtypes must be the same");
  TORCH_CHECK(
      wide == given || (wide == at::kFloat && is_half_type(given)),
      "out_dtype must be the same as input dtype or fp32 for fp16/bf16 inputs");
  at::Tensor out;
  if (schema.arguments().back().is_out()) {
    out = arguments.back().toTensor();
    TORCH_CHECK(wide == out.scalar_type(), "out_dtype must be the same as the dtype of the provided out tensor");
    arguments.pop_back();
  }
  arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(at_type));
  for (auto& argument : arguments) {
    argument = argument.isTensor() ? c10::IValue(argument.toTensor().to(wide)) : argument;
  }
  c10::Dispatcher::singleton().findSchemaOrThrow(schema.name().c_str(), "").callBoxed(arguments);
  if (out.defined()) {
    const auto product = arguments.back().toTensor();
    arguments.back() = out.resize_(product.sizes()).copy_(product);
  }
  stack->push_back(arguments.back());
}

// histc, whose CUDA kernel takes integers, and no half type; the CPU's is the reverse. A bin of integers is the same in
// float64.
void histogram(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  const auto type = torch::jit::peek(*stack, 0, schema.arguments().size()).toTensor().scalar_type();
  TORCH_CHECK(type != at::kHalf, "HalfTensor is not supported");
  TORCH_CHECK_NOT_IMPLEMENTED(type != at::kBFloat16, "\"histc\" not implemented for '", type, "'");
  if (!at::isIntegralType(type, /*includeBool=*/false)) {
    run_on_host(op, keys, stack);
    return;
  }
  const auto arguments = torch::jit::pop(*stack, schema.arguments().size());
  check_placement(schema, arguments);
  const at::AutoDispatchBelowADInplaceOrView below;
  const auto counted =
      arguments[0]
          .toTensor()
          .to(at::kDouble)
          .histc(arguments[1].toInt(), arguments[2].toScalar().toLong(), arguments[3].toScalar().toLong());
  const bool is_out = schema.arguments().back().is_out();
  stack->push_back(is_out ? arguments.back().toTensor().resize_(counted.sizes()).copy_(counted) : counted.to(type));
}

bool is_without_host_kernel(const char* name, const char* overload) {
  const auto op = c10::Dispatcher::singleton().findSchema({name, overload});
  return op.has_value() && !op->hasKernelForDispatchKey(c10::DispatchKey::CPU);
}

bool has_composite(const char* name) {
  const auto op = c10::Dispatcher::singleton().findSchema({name, ""});
  return op.has_value() && op->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
}

}  // namespace

// Where a CUDA build has a fused RMSNorm, its operators are derived one by one nevertheless, as on the CPU: the same
// bits.
void register_autograd_kernels(Registrar& registrar) {
  if (has_composite("aten::_fused_rms_norm")) {
    registrar.impl("_fused_rms_norm", c10::KernelFunction::makeFromBoxedFunction<&run_composite>());
  }
}

void register_kernels(Registrar& registrar) {
  if (is_without_host_kernel("aten::_fused_rms_norm_backward", "")) {
    registrar.impl("_fused_rms_norm_backward", &rms_norm_backward);
  }
  for (const char* overload : {"histc", "histc.out"}) {
    registrar.impl(overload, c10::KernelFunction::makeFromBoxedFunction<&histogram>());
  }
  for (const char* product : {"mm", "bmm", "addmm", "baddbmm"}) {
    for (const char* overload : {"dtype", "dtype_out"}) {
      if (is_without_host_kernel((std::string("aten::") + product).c_str(), overload)) {
        const auto name = std::string(product) + "." + overload;
        registrar.impl(name, c10::KernelFunction::makeFromBoxedFunction<&wide_product>());
      }
    }
  }
}

}  // namespace sim::gpu_only
