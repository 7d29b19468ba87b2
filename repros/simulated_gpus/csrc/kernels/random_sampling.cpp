// Samples of categories, and Bernoulli numbers each with its own probability, as CUDA's kernels draw them.
//
// Contracts held: ATen/native/Distributions.cpp (`multinomial_out`), ATen/native/cuda/MultinomialKernel.cu
// (`sampleMultinomialWithReplacement`) and DistributionTemplates.h (`bernoulli_tensor_cuda_kernel`). Arguments that
// these refuse, or assert on a GPU, are left to the fallback, which has the words.
#include "dispatch/fallback.h"
#include "dispatch/placement.h"
#include "kernels/draws.h"
#include "kernels/kernels.h"
#include "kernels/random.h"
#include "runtime/memory.h"
#include "runtime/sync.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace sim::random_sampling {

namespace {

// Numbers for each element of `self` in the order of its memory, of which a thread draws four.
at::Tensor uniform_by_fours(const at::Tensor& self, const Philox& philox) {
  std::vector<int64_t> order(static_cast<size_t>(self.dim())), sizes, back(order.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return self.stride(a) > self.stride(b); });
  for (size_t i = 0; i < order.size(); ++i) {
    sizes.push_back(self.size(order[i]));
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  const auto elements = self.numel();
  auto drawn = at::empty(sizes, at::TensorOptions(at::kFloat));
  auto* to = drawn.data_ptr<float>();
  constexpr int64_t kThreads = int64_t{1} << 40;  // as many as it takes
  Launch launch(elements, 4);
  launch.threads = kThreads;
  for_each_group(philox, launch, elements + 3, 4, [&](const Bits& bits, int64_t first, int64_t groups, int64_t step) {
    for (int64_t i = 0; i < groups; ++i) {
      for (int place = 0; place < 4 && first + i * step + place < elements; ++place) {
        UniformFloat::make(
            {{{bits[static_cast<size_t>(place)][static_cast<size_t>(i)]}}}, 1, 0, to + first + i * step + place);
      }
    }
  });
  return drawn.permute(back);
}

bool are_probabilities(const at::Tensor& p) {
  if (!p.is_floating_point()) {
    return false;
  }
  if (p.numel() == 0) {
    return true;
  }
  const auto host = host_alias(p).to(at::kDouble);
  return host.min().item<double>() >= 0 && host.max().item<double>() <= 1;  // false for a NaN
}

// `bernoulli_.Tensor` and `bernoulli.out`: not below the probability, but at most.
void bernoulli_of_tensor(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  const size_t count = schema.arguments().size();
  const bool is_out = schema.arguments().back().is_out();
  const auto p = torch::jit::peek(*stack, is_out ? 0 : 1, count).toTensor();
  auto self = torch::jit::peek(*stack, is_out ? 2 : 0, count).toTensor();
  if (!is_sim(self) || !are_probabilities(p)) {
    run_on_host(op, keys, stack);
    return;
  }
  const auto arguments = torch::jit::pop(*stack, count);
  check_placement(schema, arguments);
  note_sync_of(schema, arguments);
  const auto generator = prepare_to_draw(self, arguments[is_out ? 1 : 2].toOptional<at::Generator>());
  const at::AutoDispatchBelowADInplaceOrView below;
  if (is_out) {
    self.resize_(p.sizes());
  }
  if (self.numel() > 0) {
    const auto host = kept_alias(self);
    const auto limits = host_alias(p).to(self.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
    host.copy_(uniform_by_fours(host, draw_philox(generator, 10)).le(limits));
  }
  stack->push_back(self);
}

// `sampleMultinomialWithReplacement`, of normalized rows and their sums up to each category.
template <class Scalar>
void sample(const Philox& philox, const at::Tensor& rows, const at::Tensor& sums, const at::Tensor& result) {
  constexpr int64_t kBlock = 128, kMostRows = 65535;
  const auto categories = rows.size(1), samples = result.size(1);
  const auto per_row = (samples + kBlock - 1) / kBlock * kBlock;
  auto* to = result.data_ptr<int64_t>();
  for (int64_t row = 0; row < rows.size(0); ++row) {
    const auto *mass = rows.data_ptr<Scalar>() + row * categories, *sum = sums.data_ptr<Scalar>() + row * categories;
    for (int64_t first = 0; first < samples; first += kBatch) {
      Bits bits;
      float values[kBatch];
      draw_bits(
          philox.seed, static_cast<uint64_t>(row % kMostRows * per_row + first),
          philox.offset + static_cast<uint64_t>(row / kMostRows * 4), bits);
      const auto count = std::min<int64_t>(kBatch, samples - first);
      UniformFloat::make(bits, count, 0, values);
      for (int64_t i = 0; i < count; ++i) {
        auto at = std::lower_bound(sum, sum + categories, static_cast<Scalar>(values[i])) - sum;
        at = std::min<int64_t>(at, categories - 1);
        while (at >= 1 && mass[at] == 0) {
          --at;
        }
        *to++ = at;
      }
    }
  }
}

at::Tensor sample_with_replacement(const at::Tensor& weights, int64_t samples, const at::Generator& generator) {
  const auto rows = weights.dim() == 1 ? weights.unsqueeze(0) : weights;
  const auto type = weights.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  // Each step is rounded to the weights' type, as on a GPU.
  const auto rounded = [&](const at::Tensor& wide) { return wide.to(weights.scalar_type()).to(type); };
  const auto wide = rows.to(type);
  const auto normalized = rounded(wide / wide.sum(1, true)).contiguous();
  const auto sums = rounded(normalized.cumsum(1)).contiguous();
  auto result = at::empty({rows.size(0), samples}, at::TensorOptions(at::kLong));
  const auto philox = draw_philox(generator, static_cast<uint64_t>((rows.size(0) - 1) / 65535 + 1) * 4);
  if (type == at::kDouble) {
    sample<double>(philox, normalized, sums, result);
  } else {
    sample<float>(philox, normalized, sums, result);
  }
  return weights.dim() == 1 ? result.squeeze(0) : result;
}

// The largest quotients of weights and exponential numbers.
at::Tensor sample_distinct(const at::Tensor& self, int64_t samples, const at::Generator& generator) {
  const auto type = self.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  auto drawn = at::empty_like(self);
  drawn.exponential_(1, generator);
  const auto quotients = (kept_alias(self).to(type) / kept_alias(drawn).to(type)).to(self.scalar_type()).to(type);
  return samples == 1 ? quotients.argmax(-1, true) : std::get<1>(quotients.topk(samples));
}

bool can_be_sampled(const at::Tensor& self, int64_t samples, bool replace) {
  if (!is_sim(self) || !self.is_floating_point() || self.dim() < 1 || self.dim() > 2 || self.numel() == 0 ||
      samples <= 0 || (!replace && samples > self.size(-1)) || self.size(-1) > 1 << 24) {
    return false;
  }
  const auto host = host_alias(self).to(at::kDouble);
  return host.min().item<double>() >= 0 && host.max().item<double>() < std::numeric_limits<double>::infinity() &&
      host.sum(-1).min().item<double>() > 0;
}

void multinomial(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  const size_t count = schema.arguments().size();
  const auto self = torch::jit::peek(*stack, 0, count).toTensor();
  const auto samples = torch::jit::peek(*stack, 1, count).toInt();
  const bool replace = torch::jit::peek(*stack, 2, count).toBool();
  const bool is_out = schema.arguments().back().is_out();
  if (!can_be_sampled(self, samples, replace) ||
      (is_out && torch::jit::peek(*stack, 4, count).toTensor().scalar_type() != at::kLong)) {
    run_on_host(op, keys, stack);
    return;
  }
  const auto arguments = torch::jit::pop(*stack, count);
  check_placement(schema, arguments);
  note_sync_of(schema, arguments);
  const auto& given = arguments[0].toTensor();
  const auto generator = prepare_to_draw(given, arguments[3].toOptional<at::Generator>());
  const at::AutoDispatchBelowADInplaceOrView below;
  const auto sampled = adopt_result(
      replace && samples > 1 ? sample_with_replacement(host_alias(given), samples, generator)
                             : sample_distinct(given, samples, generator),
      given.device().index());
  stack->push_back(is_out ? arguments[4].toTensor().resize_(sampled.sizes()).copy_(sampled) : sampled);
}

}  // namespace

void register_kernels(Registrar& registrar) {
  if (draws_from_cpu()) {
    return;
  }
  for (const char* name : {"bernoulli_.Tensor", "bernoulli.out"}) {
    registrar.impl(name, c10::KernelFunction::makeFromBoxedFunction<&bernoulli_of_tensor>());
  }
  for (const char* name : {"multinomial", "multinomial.out"}) {
    registrar.impl(name, c10::KernelFunction::makeFromBoxedFunction<&multinomial>());
  }
}

}  // namespace sim::random_sampling
