// The random numbers of a GPU: uniform, normal, Bernoulli, integers, exponential and their kin.
//
// What an operator checks before it draws is ATen/native/DistributionTemplates.h itself, called with the kernels of
// distributions.h. With `REPROS_SIM_RANDOM=cpu` none of them is registered, and the CPU's draw.
#include "kernels/random.h"

#include "autograd/threads.h"
#include "dispatch/placement.h"
#include "kernels/distributions.h"
#include "kernels/kernels.h"
#include "runtime/cuda_errors.h"
#include "runtime/device.h"
#include "runtime/generator.h"
#include "runtime/memory.h"
#include "torch_versions.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/DistributionTemplates.h>

#include <string>
#include <utility>

namespace sim::random {

at::Generator prepare_to_draw(const at::Tensor& self, const MaybeGenerator& generator) {
  // The dispatcher sends a call with CPU tensors here because of the generator's type, as it does for CUDA.
  TORCH_CHECK(is_sim(self), "Expected a 'cpu' device type for generator but found 'cuda'");
  check_context();
  agree_on_threads();
  return device_generator(generator, self.device().index());
}

namespace {

namespace templates = at::native::templates;

// A name in these templates only.
struct Rng {};

// The operators that fill a tensor and take these arguments; `kFill` checks them and draws.
template <class... Arguments>
struct Filled {
  template <at::Tensor& (*kFill)(at::Tensor&, Arguments..., MaybeGenerator)>
  static at::Tensor& by(at::Tensor& self, Arguments... arguments, MaybeGenerator generator) {
    const auto used = prepare_to_draw(self, generator);
    const at::AutoDispatchBelowADInplaceOrView below;
    return kFill(self, arguments..., used);
  }
};

constexpr auto* kRandomFrom =
    &Filled<int64_t, SIM_OPTIONAL<int64_t>>::by<&templates::random_from_to_impl<RandomFromToKernel, Rng>>;

at::Tensor& random_to(at::Tensor& self, int64_t to, MaybeGenerator generator) {
  return kRandomFrom(self, 0, to, std::move(generator));
}

// `normal` with a tensor for the mean, the deviation or both.
void normal_of_tensors(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  const auto arguments = torch::jit::pop(*stack, schema.arguments().size());
  check_placement(schema, arguments);
  const auto& first = arguments[0].isTensor() ? arguments[0].toTensor() : arguments[1].toTensor();
  const auto used = prepare_to_draw(first, arguments[2].toOptional<at::Generator>());
  const at::AutoDispatchBelowADInplaceOrView below;
  const auto draw = [&](const auto& mean, const auto& std) {
    if (!schema.arguments().back().is_out()) {
      stack->push_back(templates::normal_impl<NormalKernel, Rng>(mean, std, used));
    } else {
      auto out = arguments.back().toTensor();
      stack->push_back(templates::normal_out_impl<NormalKernel, Rng>(out, mean, std, used));
    }
  };
  if (!arguments[0].isTensor()) {
    draw(arguments[0].toDouble(), first);
  } else if (arguments[1].isTensor()) {
    draw(first, arguments[1].toTensor());
  } else {
    draw(first, arguments[1].toDouble());
  }
}

}  // namespace

void register_kernels(Registrar& registrar) {
  if (draws_from_cpu()) {
    return;
  }
  registrar.impl("uniform_", &Filled<double, double>::by<&templates::uniform_impl_<UniformKernel, Rng>>);
  registrar.impl("normal_", &Filled<double, double>::by<&templates::normal_impl_<NormalKernel, Rng>>);
  registrar.impl("log_normal_", &Filled<double, double>::by<&templates::log_normal_impl_<LogNormalKernel, Rng>>);
  registrar.impl("cauchy_", &Filled<double, double>::by<&templates::cauchy_impl_<CauchyKernel, Rng>>);
  registrar.impl("exponential_", &Filled<double>::by<&templates::exponential_impl_<ExponentialKernel, Rng>>);
  registrar.impl("geometric_", &Filled<double>::by<&templates::geometric_impl_<GeometricKernel, Rng>>);
  registrar.impl("bernoulli_.float", &Filled<double>::by<&templates::bernoulli_impl_<BernoulliKernel, Rng>>);
  registrar.impl("random_", &Filled<>::by<&templates::random_impl<RandomKernel, Rng>>);
  registrar.impl("random_.from", kRandomFrom);
  registrar.impl("random_.to", &random_to);
  for (const char* name : {"normal.Tensor_float", "normal.float_Tensor", "normal.Tensor_Tensor"}) {
    for (const char* out : {"", "_out"}) {
      const auto overload = std::string(name) + out;
      registrar.impl(overload, c10::KernelFunction::makeFromBoxedFunction<&normal_of_tensors>());
    }
  }
}

}  // namespace sim::random
