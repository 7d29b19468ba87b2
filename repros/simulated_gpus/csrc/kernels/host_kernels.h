// The CPU kernels of the fast path (fast_path.cpp), some without TensorIterator.
//
// Contract held: the bits of the CPU's kernel. A Python number next to tensors of float32 is converted here, as
// TensorIteratorBase::compute_types does it by a copy, which takes longer than the kernel for a small tensor.
#pragma once

#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>
#include <ATen/TensorIterator.h>
#include <ATen/ops/_foreach_add_ops.h>
#include <ATen/ops/_foreach_div_ops.h>
#include <ATen/ops/_foreach_mul_ops.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/sub_ops.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <type_traits>
#include <vector>

namespace sim {

// The operators of TensorIterator's that Python calls with a number in the place of their second tensor.
template <class Operator>
constexpr bool kTakesNumbers =
    std::is_same_v<Operator, at::_ops::add_Tensor> || std::is_same_v<Operator, at::_ops::sub_Tensor> ||
    std::is_same_v<Operator, at::_ops::mul_Tensor> || std::is_same_v<Operator, at::_ops::div_Tensor> ||
    std::is_same_v<Operator, at::_ops::add__Tensor> || std::is_same_v<Operator, at::_ops::mul__Tensor>;

// A Python number next to a tensor of float32, in that type: TensorIterator would convert it by a copy, in each call.
// Not for bfloat16, of which kernels read the number as it was given.
inline at::Tensor number_for(const at::Tensor& tensor, const at::Tensor& number) {
  const auto type = number.scalar_type();
  const auto is_number = [](const at::Tensor& each) { return each.unsafeGetTensorImpl()->is_wrapped_number(); };
  if (tensor.scalar_type() != at::kFloat || is_number(tensor) || !is_number(number) ||
      (type != at::kDouble && type != at::kLong)) {
    return number;
  }
  auto converted = at::detail::empty_cpu({}, at::kFloat);
  *converted.data_ptr<float>() = type == at::kDouble ? static_cast<float>(*number.data_ptr<double>())
                                                     : static_cast<float>(*number.data_ptr<int64_t>());
  converted.unsafeGetTensorImpl()->set_wrapped_number(true);
  return converted;
}

constexpr c10::DispatchKeySet kHost(c10::DispatchKey::CPU);

template <class Operator>
struct HostKernel {
  template <class... Hosts>
  static decltype(auto) call(Hosts&&... hosts) {
    if constexpr (kTakesNumbers<Operator>) {
      return call_with_number(hosts...);
    } else {
      return Operator::redispatch(kHost, hosts...);
    }
  }

 private:
  template <class... Hosts>
  static decltype(auto) call_with_number(at::Tensor& self, const at::Tensor& number, Hosts&... hosts) {
    return Operator::redispatch(kHost, self, number_for(self, number), hosts...);
  }
};

// The CPU's kernel takes lists tensor by tensor (ATen/native/ForeachOpsKernels.cpp). Other types are left to it: in
// torch 2.15 it has a way of its own, with other bits in bfloat16.
inline bool are_float(const std::vector<at::Tensor>& tensors) {
  return std::all_of(
      tensors.begin(), tensors.end(), [](const at::Tensor& each) { return each.scalar_type() == at::kFloat; });
}

// Four elements in a vector, of the compiler's own: the build's -O1 vectorises no loop.
using FourFloats = float __attribute__((vector_size(16)));

template <class Arithmetic>
__attribute__((flatten)) void change_elements(float* data, int64_t count, float number) {
  const Arithmetic change;
  int64_t i = 0;
  for (FourFloats four; i + 4 <= count; i += 4) {
    std::memcpy(&four, data + i, sizeof four);
    four = change(four, number);
    std::memcpy(data + i, &four, sizeof four);
  }
  for (; i < count; ++i) {
    data[i] = change(data[i], number);
  }
}

// Changes a small tensor without TensorIterator, whose preparations take longer than the arithmetic: one operation of
// IEEE 754, which has one result. Returns false, and changes nothing, where PyTorch may share the elements among
// threads, they have gaps, or the number is of a type that decides the result's.
template <class Arithmetic>
bool change_small(const at::Tensor& tensor, const at::Scalar& number) {
  const bool is_small = tensor.numel() < at::internal::GRAIN_SIZE && tensor.is_non_overlapping_and_dense();
  const auto type = number.type();
  if (!is_small || (type != at::kDouble && type != at::kLong)) {
    return false;
  }
  const float converted =
      type == at::kDouble ? static_cast<float>(number.toDouble()) : static_cast<float>(number.toLong());
  change_elements<Arithmetic>(tensor.data_ptr<float>(), tensor.numel(), converted);
  return true;
}

// A foreach operator that changes its tensors by a number: one for all, or one for each.
template <class Operator, class Arithmetic>
struct HostListKernel {
  static void call(std::vector<at::Tensor> hosts, const at::Scalar& number) {
    if (!are_float(hosts)) {
      return Operator::redispatch(kHost, hosts, number);
    }
    for (const auto& host : hosts) {
      if (!change_small<Arithmetic>(host, number)) {
        Operator::redispatch(kHost, host, number);
      }
    }
  }
  static void call(std::vector<at::Tensor> hosts, at::ArrayRef<at::Scalar> numbers) {
    if (!are_float(hosts) || hosts.size() != numbers.size()) {
      return Operator::redispatch(kHost, hosts, numbers);
    }
    for (size_t i = 0; i < hosts.size(); ++i) {
      if (!change_small<Arithmetic>(hosts[i], numbers[i])) {
        Operator::redispatch(kHost, hosts[i], numbers[i]);
      }
    }
  }
};

template <>
struct HostKernel<at::_ops::_foreach_add__Scalar> : HostListKernel<at::_ops::_foreach_add__Scalar, std::plus<>> {};

template <>
struct HostKernel<at::_ops::_foreach_mul__Scalar> : HostListKernel<at::_ops::_foreach_mul__Scalar, std::multiplies<>> {
};

template <>
struct HostKernel<at::_ops::_foreach_div__ScalarList>
    : HostListKernel<at::_ops::_foreach_div__ScalarList, std::divides<>> {};

}  // namespace sim
