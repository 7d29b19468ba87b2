// What CUDA's kernels make of random bits, and how they fill a tensor with it.
//
// Contracts held: curand's transformations of bits (curand_uniform.h, curand_normal.h) and
// ATen/native/cuda/DistributionTemplates.h (`distribution_nullary_kernel`: which numbers an element gets).
#pragma once

#include "kernels/philox.h"

#include <c10/util/FunctionRef.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace sim {

using MaybeGenerator = SIM_OPTIONAL<at::Generator>;

// The compiler of CUDA's kernels contracts a product and a sum to one rounding.
inline float multiply_add(float a, float b, float c) {
  return static_cast<float>(static_cast<double>(a) * static_cast<double>(b) + static_cast<double>(c));
}
inline double multiply_add(double a, double b, double c) {
  return std::fma(a, b, c);
}

// What a thread makes of its next four numbers: `kCount` values, of which `make` gives those of one batch at a place.
struct UniformFloat {
  using Value = float;
  static constexpr int kCount = 4;
  static void make(const Bits& bits, int64_t count, int place, float* values) {
    const auto* row = bits[static_cast<size_t>(place)].data();
    for (int64_t i = 0; i < count; ++i) {
      values[i] = static_cast<float>(row[i]) * 0x1p-32F + 0x1p-33F;
    }
  }
};

struct NormalFloat {
  using Value = float;
  static constexpr int kCount = 4;
  static void make(const Bits& bits, int64_t /*count*/, int place, float* values) {
    normal_floats(bits, place, values);
  }
};

inline double uniform_double(uint32_t low, uint32_t high) {
  const auto bits = static_cast<uint64_t>(low) ^ (static_cast<uint64_t>(high) << 21);
  return static_cast<double>(bits) * 0x1p-53 + 0x1p-54;
}

struct UniformDouble {
  using Value = double;
  static constexpr int kCount = 2;
  static void make(const Bits& bits, int64_t count, int place, double* values) {
    for (int64_t i = 0; i < count; ++i) {
      values[i] = uniform_double(bits[2 * place][i], bits[2 * place + 1][i]);
    }
  }
};

struct NormalDouble {
  using Value = double;
  static constexpr int kCount = 2;
  static void make(const Bits& bits, int64_t count, int place, double* values) {
    for (int64_t i = 0; i < count; ++i) {
      const double u = uniform_double(bits[0][i], bits[1][i]), v = 2 * uniform_double(bits[2][i], bits[3][i]);
      const double angle = M_PI * v;
      values[i] = std::sqrt(-2.0 * std::log(u)) * (place == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
};

struct Integer32 {
  using Value = uint32_t;
  static constexpr int kCount = 4;
  static void make(const Bits& bits, int64_t count, int place, uint32_t* values) {
    std::copy_n(bits[place].begin(), count, values);
  }
};

struct Integer64 {
  using Value = uint64_t;
  static constexpr int kCount = 2;
  static void make(const Bits& bits, int64_t count, int place, uint64_t* values) {
    for (int64_t i = 0; i < count; ++i) {
      values[i] = static_cast<uint64_t>(bits[2 * place][i]) << 32 | bits[2 * place + 1][i];
    }
  }
};

template <class Accumulated>
using Uniform = std::conditional_t<std::is_same_v<Accumulated, double>, UniformDouble, UniformFloat>;
template <class Accumulated>
using Normal = std::conditional_t<std::is_same_v<Accumulated, double>, NormalDouble, NormalFloat>;

// Where an iterator's output has its elements, in the iterator's order.
class Output {
 public:
  explicit Output(const at::TensorIteratorBase& iter)
      : data_(static_cast<char*>(iter.data_ptr(0))),
        element_size_(iter.element_size(0)),
        shape_(iter.shape()),
        strides_(iter.strides(0)) {}

  char* at(int64_t element) const {
    if (is_dense()) {
      return data_ + element * element_size_;
    }
    int64_t offset = 0;
    for (size_t i = 0; i < shape_.size(); ++i) {
      offset += element % shape_[i] * strides_[i];
      element /= shape_[i];
    }
    return data_ + offset;
  }
  // Whether the elements follow one another in memory.
  bool is_dense() const {
    return shape_.empty() || (shape_.size() == 1 && strides_[0] == element_size_);
  }

 private:
  char* data_;
  int64_t element_size_;
  c10::IntArrayRef shape_, strides_;
};

// Stores what a distribution makes of `count` values in as many elements that follow one another.
template <class Value>
using Store = c10::function_ref<void(const Value* values, int64_t count, char* elements)>;

// `distribution_nullary_kernel`. Not a template of the tensor's type and of the distribution: the compiler takes a
// seventh of its time for the code of all of them.
template <class Draw>
void fill_drawn(at::TensorIteratorBase& iter, const MaybeGenerator& generator, Store<typename Draw::Value> store) {
  const auto elements = iter.numel();
  if (elements == 0) {
    return;
  }
  const Launch launch(elements, Draw::kCount);
  const auto philox = draw_philox(*generator, launch.increment);
  if (!iter.can_use_32bit_indexing()) {
    for (auto& part : iter.with_32bit_indexing()) {
      fill_drawn<Draw>(part, generator, store);
    }
    return;
  }
  const Output output(iter);
  for_each_batch(philox, launch, elements, Draw::kCount, [&](const Bits& bits, int64_t first, int64_t threads) {
    typename Draw::Value values[kBatch];
    for (int place = 0; place < Draw::kCount && first < elements; ++place, first += launch.threads) {
      const auto count = std::min(threads, elements - first);
      Draw::make(bits, count, place, values);
      const auto together = output.is_dense() ? count : 1;
      for (int64_t i = 0; i < count; i += together) {
        store(values + i, together, output.at(first + i));
      }
    }
  });
}

template <class Scalar, class Draw, class Transform>
void fill(at::TensorIteratorBase& iter, const MaybeGenerator& generator, const Transform& transform) {
  fill_drawn<Draw>(iter, generator, [&](const typename Draw::Value* values, int64_t count, char* elements) {
    auto* row = reinterpret_cast<Scalar*>(elements);
    for (int64_t i = 0; i < count; ++i) {
      row[i] = transform(values[i]);
    }
  });
}

}  // namespace sim
