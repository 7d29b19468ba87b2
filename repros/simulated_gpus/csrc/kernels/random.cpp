// The random numbers of a GPU: uniform, normal, Bernoulli, integers, exponential and their kin.
//
// Contracts held: ATen/native/cuda/DistributionTemplates.h (which numbers an element gets, in which type), curand's
// transformations of bits (curand_uniform.h, curand_normal.h) and ATen/core/TransformationHelper.h. What an operator
// checks before it draws is ATen/native/DistributionTemplates.h itself, called with these kernels. With
// `REPROS_SIM_RANDOM=cpu` none of them is registered, and the CPU's draw.
#include "kernels/random.h"

#include "autograd/threads.h"
#include "dispatch/placement.h"
#include "kernels/draws.h"
#include "runtime/cuda_errors.h"
#include "runtime/device.h"
#include "runtime/generator.h"
#include "runtime/memory.h"
#include "torch_versions.h"

#include <ATen/AccumulateType.h>
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/TransformationHelper.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/DistributionTemplates.h>
#if __has_include(<ATen/Dispatch_v2.h>)
#include <ATen/Dispatch_v2.h>
#endif
#include <torch/library.h>

#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

namespace sim {

namespace {

// The kernels, in the form that ATen/native/DistributionTemplates.h calls. `Rng` is a name in its templates only.
struct Rng {};

template <class>
struct UniformKernel {
  void operator()(at::TensorIteratorBase& iter, double from_, double to_, const MaybeGenerator& generator) {
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, iter.dtype(), "uniform_kernel_cuda", [&] {
      using Wide = at::opmath_type<scalar_t>;
      const auto from = static_cast<scalar_t>(from_), to = static_cast<scalar_t>(to_);
      const auto range = static_cast<Wide>(to - from);
      fill<scalar_t, Uniform<Wide>>(iter, generator, [=](Wide drawn) {
      // Curand draws from (0, 1]; what would be `to` becomes `from`.
#if SIM_TORCH_AT_LEAST(2, 1)
        const auto value = static_cast<scalar_t>(multiply_add(drawn, range, static_cast<Wide>(from)));
        return value == to ? from : value;
#else
        const Wide below_one = drawn == 1 ? 0 : drawn;
        return static_cast<scalar_t>(multiply_add(below_one, range, static_cast<Wide>(from)));
#endif
      });
    });
  }
};

template <class>
struct NormalKernel {
  void operator()(const at::Tensor& self, double mean_, double std_, const MaybeGenerator& generator) {
    auto iter = at::TensorIterator::borrowing_nullary_op(self);
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, iter.dtype(), "normal_kernel_cuda", [&] {
      using Wide = at::acc_type<scalar_t, true>;
      const auto mean = static_cast<Wide>(mean_), std = static_cast<Wide>(std_);
      fill<scalar_t, Normal<Wide>>(
          iter, generator, [=](Wide drawn) { return static_cast<scalar_t>(multiply_add(drawn, std, mean)); });
    });
  }
};

template <class>
struct LogNormalKernel {
  void operator()(at::TensorIteratorBase& iter, double mean_, double std_, const MaybeGenerator& generator) {
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, iter.dtype(), "log_normal_cuda", [&] {
      using Wide = at::acc_type<scalar_t, true>;
      const auto mean = static_cast<Wide>(mean_), std = static_cast<Wide>(std_);
      fill<scalar_t, Normal<Wide>>(
          iter, generator, [=](Wide drawn) { return static_cast<scalar_t>(std::exp(multiply_add(drawn, std, mean))); });
    });
  }
};

template <class>
struct CauchyKernel {
  void operator()(at::TensorIteratorBase& iter, double median, double sigma, const MaybeGenerator& generator) {
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, iter.dtype(), "cauchy_cuda", [&] {
      using Wide = at::acc_type<scalar_t, true>;
      fill<scalar_t, Uniform<Wide>>(iter, generator, [=](Wide drawn) {
        return static_cast<scalar_t>(
            at::transformation::cauchy<Wide>(drawn, static_cast<Wide>(median), static_cast<Wide>(sigma)));
      });
    });
  }
};

template <class>
struct ExponentialKernel {
  void operator()(at::TensorIteratorBase& iter, double lambda_, const MaybeGenerator& generator) {
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, iter.dtype(), "exponential_cuda", [&] {
      using Wide = at::acc_type<scalar_t, true>;
      const auto lambda = static_cast<Wide>(lambda_);
      // The branch of `transformation::exponential` that CUDA's compiler takes: never 0.
      constexpr auto kHalfStep = std::numeric_limits<Wide>::epsilon() / 2;
      fill<scalar_t, Uniform<Wide>>(iter, generator, [=](Wide drawn) {
        const auto log = drawn >= 1 - kHalfStep ? -kHalfStep : std::log(drawn);
        return static_cast<scalar_t>(static_cast<Wide>(-1) / lambda * log);
      });
    });
  }
};

// Integers and bool draw float, as at::DiscreteDistributionType has it.
template <class Scalar>
using Discrete = std::conditional_t<std::is_same_v<Scalar, double>, double, float>;

template <class>
struct GeometricKernel {
  void operator()(at::TensorIteratorBase& iter, double p, const MaybeGenerator& generator) {
    AT_DISPATCH_ALL_TYPES_AND2(at::kHalf, at::kBFloat16, iter.dtype(), "geometric_cuda", [&] {
      using Wide = Discrete<scalar_t>;
      fill<scalar_t, Uniform<Wide>>(iter, generator, [=](Wide drawn) {
        return static_cast<scalar_t>(at::transformation::geometric<Wide>(drawn, static_cast<Wide>(p)));
      });
    });
  }
};

template <class>
struct BernoulliKernel {
  void operator()(const at::Tensor& self, double p_, const MaybeGenerator& generator) {
    auto iter = at::TensorIterator::borrowing_nullary_op(self);
    AT_DISPATCH_ALL_TYPES_AND3(at::kHalf, at::kBFloat16, at::kBool, iter.dtype(), "bernoulli_scalar_cuda_", [&] {
      using Wide = Discrete<scalar_t>;
      const auto p = static_cast<Wide>(p_);
      fill<scalar_t, Uniform<Wide>>(iter, generator, [=](Wide drawn) { return static_cast<scalar_t>(drawn < p); });
    });
  }
};

#ifdef AT_DISPATCH_V2
#define SIM_DISPATCH_INTEGERS(type, name, ...)                                                        \
  AT_DISPATCH_V2(                                                                                     \
      type, name, AT_WRAP(__VA_ARGS__), AT_EXPAND(AT_ALL_TYPES), at::kBool, at::kHalf, at::kBFloat16, \
      AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES))
#else
#define SIM_DISPATCH_INTEGERS(type, name, ...) \
  AT_DISPATCH_ALL_TYPES_AND3(at::kBool, at::kHalf, at::kBFloat16, type, name, __VA_ARGS__)
#endif

// Whether CUDA takes two numbers for an integer below `range`.
template <class Scalar>
bool needs_64_bits(uint64_t range) {
#if SIM_TORCH_AT_LEAST(2, 7)
  return range >= uint64_t{1} << 28;
#else
  return range >= uint64_t{1} << 32 &&
      (std::is_same_v<Scalar, int64_t> || std::is_floating_point_v<Scalar> || std::is_same_v<Scalar, at::BFloat16>);
#endif
}

template <class>
struct RandomFromToKernel {
  void operator()(at::TensorIteratorBase& iter, uint64_t range, int64_t base, const MaybeGenerator& generator) {
    SIM_DISPATCH_INTEGERS(iter.dtype(), "random_from_to_kernel_cuda", [&] {
      const auto transform = [=](auto drawn) {
        return at::transformation::uniform_int_from_to<scalar_t>(drawn, range, base);
      };
      if (needs_64_bits<scalar_t>(range)) {
        fill<scalar_t, Integer64>(iter, generator, transform);
      } else {
        fill<scalar_t, Integer32>(iter, generator, transform);
      }
    });
  }
  void operator()(at::TensorIteratorBase& iter, const MaybeGenerator& generator) {
    AT_DISPATCH_ALL_TYPES_AND(at::kBFloat16, iter.dtype(), "random_full_64_bits_range_kernel_cuda", [&] {
      constexpr bool kIsWide = std::is_same_v<scalar_t, int64_t> || std::is_floating_point_v<scalar_t> ||
          std::is_same_v<scalar_t, at::BFloat16>;
      TORCH_CHECK(kIsWide, "random_full_64_bits_range_kernel_cuda handles only int64, double, float and bfloat16");
      fill<scalar_t, Integer64>(
          iter, generator, [](uint64_t drawn) { return at::transformation::uniform_int_full_range<scalar_t>(drawn); });
    });
  }
};

template <class>
struct RandomKernel {
  void operator()(at::TensorIteratorBase& iter, const MaybeGenerator& generator) {
    AT_DISPATCH_ALL_TYPES_AND3(at::kHalf, at::kBFloat16, at::kBool, iter.dtype(), "random_kernel_cuda", [&] {
      const auto transform = [](auto drawn) { return at::transformation::uniform_int<scalar_t>(drawn); };
      if constexpr (std::is_same_v<scalar_t, double> || std::is_same_v<scalar_t, int64_t>) {
        fill<scalar_t, Integer64>(iter, generator, transform);
      } else {
        fill<scalar_t, Integer32>(iter, generator, transform);
      }
    });
  }
};

namespace templates = at::native::templates;

}  // namespace

at::Generator prepare_to_draw(const at::Tensor& self, const MaybeGenerator& generator) {
  // The dispatcher sends a call with CPU tensors here because of the generator's type, as it does for CUDA.
  TORCH_CHECK(is_sim(self), "Expected a 'cpu' device type for generator but found 'cuda'");
  check_context();
  agree_on_threads();
  return device_generator(generator, self.device().index());
}

namespace {

at::Tensor& uniform_(at::Tensor& self, double from, double to, MaybeGenerator generator) {
  const auto used = prepare_to_draw(self, generator);
  const at::AutoDispatchBelowADInplaceOrView below;
  return templates::uniform_impl_<UniformKernel, Rng>(self, from, to, used);
}

at::Tensor& normal_(at::Tensor& self, double mean, double std, MaybeGenerator generator) {
  const auto used = prepare_to_draw(self, generator);
  const at::AutoDispatchBelowADInplaceOrView below;
  return templates::normal_impl_<NormalKernel, Rng>(self, mean, std, used);
}

at::Tensor& log_normal_(at::Tensor& self, double mean, double std, MaybeGenerator generator) {
  const auto used = prepare_to_draw(self, generator);
  const at::AutoDispatchBelowADInplaceOrView below;
  return templates::log_normal_impl_<LogNormalKernel, Rng>(self, mean, std, used);
}

at::Tensor& cauchy_(at::Tensor& self, double median, double sigma, MaybeGenerator generator) {
  const auto used = prepare_to_draw(self, generator);
  const at::AutoDispatchBelowADInplaceOrView below;
  return templates::cauchy_impl_<CauchyKernel, Rng>(self, median, sigma, used);
}

at::Tensor& exponential_(at::Tensor& self, double lambda, MaybeGenerator generator) {
  const auto used = prepare_to_draw(self, generator);
  const at::AutoDispatchBelowADInplaceOrView below;
  return templates::exponential_impl_<ExponentialKernel, Rng>(self, lambda, used);
}

at::Tensor& geometric_(at::Tensor& self, double p, MaybeGenerator generator) {
  const auto used = prepare_to_draw(self, generator);
  const at::AutoDispatchBelowADInplaceOrView below;
  return templates::geometric_impl_<GeometricKernel, Rng>(self, p, used);
}

at::Tensor& bernoulli_(at::Tensor& self, double p, MaybeGenerator generator) {
  const auto used = prepare_to_draw(self, generator);
  const at::AutoDispatchBelowADInplaceOrView below;
  return templates::bernoulli_impl_<BernoulliKernel, Rng>(self, p, used);
}

at::Tensor& random_(at::Tensor& self, MaybeGenerator generator) {
  const auto used = prepare_to_draw(self, generator);
  const at::AutoDispatchBelowADInplaceOrView below;
  return templates::random_impl<RandomKernel, Rng>(self, used);
}

at::Tensor& random_from(at::Tensor& self, int64_t from, SIM_OPTIONAL<int64_t> to, MaybeGenerator generator) {
  const auto used = prepare_to_draw(self, generator);
  const at::AutoDispatchBelowADInplaceOrView below;
  return templates::random_from_to_impl<RandomFromToKernel, Rng>(self, from, to, used);
}

at::Tensor& random_to(at::Tensor& self, int64_t to, MaybeGenerator generator) {
  return random_from(self, 0, to, std::move(generator));
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

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  if (draws_from_cpu()) {
    return;
  }
  library.impl("uniform_", &uniform_);
  library.impl("normal_", &normal_);
  library.impl("log_normal_", &log_normal_);
  library.impl("cauchy_", &cauchy_);
  library.impl("exponential_", &exponential_);
  library.impl("geometric_", &geometric_);
  library.impl("bernoulli_.float", &bernoulli_);
  library.impl("random_", &random_);
  library.impl("random_.from", &random_from);
  library.impl("random_.to", &random_to);
  for (const char* name : {"normal.Tensor_float", "normal.float_Tensor", "normal.Tensor_Tensor"}) {
    for (const char* out : {"", "_out"}) {
      const auto overload = std::string(name) + out;
      library.impl(overload.c_str(), torch::CppFunction::makeFromBoxedFunction<&normal_of_tensors>());
    }
  }
}

}  // namespace sim
