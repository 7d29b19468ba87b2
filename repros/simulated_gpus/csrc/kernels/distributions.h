// The distributions that a GPU draws from, in the form that ATen/native/DistributionTemplates.h calls.
//
// Contract held: ATen/native/cuda/DistributionTemplates.h (which numbers an element gets, in which type) and
// ATen/core/TransformationHelper.h.
#pragma once

#include "kernels/draws.h"
#include "torch_versions.h"

#include <ATen/AccumulateType.h>
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/core/TransformationHelper.h>
#include <ATen/native/TensorIterator.h>
#if __has_include(<ATen/Dispatch_v2.h>)
#include <ATen/Dispatch_v2.h>
#endif

#include <cmath>
#include <limits>
#include <type_traits>

namespace sim {

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

}  // namespace sim
