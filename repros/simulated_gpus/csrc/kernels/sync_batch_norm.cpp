// SyncBatchNorm's own operators: PyTorch accepts this device, but has them for CUDA only.
//
// Contracts held: native_functions.yaml (`batch_norm_stats` and the related ones) and their use in
// torch/nn/modules/_functions.py. The statistics cover all ranks' rows. The arithmetic is float32 for narrower types,
// as on CUDA, in another order.
#include "kernels/kernels.h"
#include "torch_versions.h"

#if SIM_HAS_COLLECTIVES
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/full.h>

#include <tuple>

namespace sim::sync_batch_norm {

namespace {

using at::Tensor;
using Optional = SIM_OPTIONAL<at::Tensor>;

Tensor widen(const Tensor& tensor) {
  return tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16 ? tensor.to(at::kFloat) : tensor;
}

std::vector<int64_t> all_but_channels(const Tensor& tensor) {
  std::vector<int64_t> dims{0};
  for (int64_t dim = 2; dim < tensor.dim(); ++dim) {
    dims.push_back(dim);
  }
  return dims;
}

// One value for each channel, shaped to broadcast with `like`.
Tensor per_channel(const Tensor& values, const Tensor& like) {
  std::vector<int64_t> shape(like.dim(), 1);
  shape[1] = values.numel();
  return values.reshape(shape);
}

bool is_given(const Optional& tensor) {
  return tensor.has_value() && tensor->defined();
}

std::tuple<Tensor, Tensor> stats(const Tensor& input, double eps) {
  const auto values = widen(input);
  const auto dims = all_but_channels(values);
  return {values.mean(dims), values.var(dims, /*unbiased=*/false).add(eps).rsqrt()};
}

std::tuple<Tensor, Tensor> gather_stats_with_counts(
    const Tensor& /*input*/, const Tensor& means, const Tensor& inverse_deviations, const Optional& running_mean,
    const Optional& running_var, double momentum, double eps, const Tensor& counts) {
  const auto weights = counts.to(means.scalar_type()).reshape({-1, 1});
  const auto total = weights.sum();
  const auto mean = (means * weights).sum(0) / total;
  const auto variances = inverse_deviations.pow(-2) - eps;
  const auto variance = ((variances + (means - mean).pow(2)) * weights).sum(0) / total;
  if (is_given(running_mean)) {
    Tensor running = *running_mean;
    running.mul_(1 - momentum).add_(mean, momentum);
  }
  if (is_given(running_var)) {
    Tensor running = *running_var;
    running.mul_(1 - momentum).add_(variance * (total / (total - 1)), momentum);
  }
  return {mean, (variance + eps).rsqrt()};
}

std::tuple<Tensor, Tensor> gather_stats(
    const Tensor& input, const Tensor& means, const Tensor& inverse_deviations, const Optional& running_mean,
    const Optional& running_var, double momentum, double eps, int64_t count) {
  const auto counts = at::full({means.size(0)}, count, means.options());
  return gather_stats_with_counts(input, means, inverse_deviations, running_mean, running_var, momentum, eps, counts);
}

Tensor normalise(
    const Tensor& input, const Optional& weight, const Optional& bias, const Tensor& mean,
    const Tensor& inverse_deviation, double /*eps*/) {
  auto values = (widen(input) - per_channel(mean, input)) * per_channel(inverse_deviation, input);
  if (is_given(weight)) {
    values = values * per_channel(*weight, input);
  }
  if (is_given(bias)) {
    values = values + per_channel(*bias, input);
  }
  return values.to(input.scalar_type());
}

std::tuple<Tensor, Tensor, Tensor, Tensor> backward_reduce(
    const Tensor& gradient, const Tensor& input, const Tensor& mean, const Tensor& inverse_deviation,
    const Optional& weight, bool /*input_g*/, bool weight_g, bool bias_g) {
  const auto dims = all_but_channels(input);
  const auto wide = widen(gradient);
  const auto sum = wide.sum(dims);
  const auto product = (wide * (widen(input) - per_channel(mean, input))).sum(dims);
  const auto type = is_given(weight) ? weight->scalar_type() : input.scalar_type();
  return {sum, product, weight_g ? (product * inverse_deviation).to(type) : Tensor(), bias_g ? sum.to(type) : Tensor()};
}

Tensor backward_elements(
    const Tensor& gradient, const Tensor& input, const Tensor& mean, const Tensor& inverse_deviation,
    const Optional& weight, const Tensor& sum, const Tensor& product, const Tensor& counts) {
  const auto total = counts.sum();
  const auto centred = widen(input) - per_channel(mean, input);
  const auto slope = per_channel(product / total * inverse_deviation.pow(2), input);
  auto values =
      (widen(gradient) - per_channel(sum / total, input) - centred * slope) * per_channel(inverse_deviation, input);
  if (is_given(weight)) {
    values = values * per_channel(*weight, input);
  }
  return values.to(input.scalar_type());
}

}  // namespace

void register_kernels(Registrar& registrar) {
  registrar.impl("batch_norm_stats", &stats);
  registrar.impl("batch_norm_gather_stats", &gather_stats);
  registrar.impl("batch_norm_gather_stats_with_counts", &gather_stats_with_counts);
  registrar.impl("batch_norm_elemt", &normalise);
  registrar.impl("batch_norm_backward_reduce", &backward_reduce);
  registrar.impl("batch_norm_backward_elemt", &backward_elements);
}

}  // namespace sim::sync_batch_norm

#endif
