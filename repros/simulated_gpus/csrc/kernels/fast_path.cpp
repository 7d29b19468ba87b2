// The fast path: unboxed kernels for the operators that training calls most, with half of the instructions of the boxed
// fallback `run_on_host`. The fallback gets every other call (several devices, float16, deterministic algorithms). None
// of these operators waits for a device (sync.cpp).
//
// Contract held: fallback.cpp's, for operators that have a CUDA kernel in native_functions.yaml and whose results are
// new memory, or their first argument, of which they change the elements.
#include "autograd/threads.h"
#include "dispatch/composites.h"
#include "dispatch/fallback.h"
#include "dispatch/foreach.h"
#include "dispatch/placement.h"
#include "dispatch/types.h"
#include "kernels/host_kernels.h"
#include "kernels/kernels.h"
#include "kernels/softmax.h"
#include "runtime/cuda_errors.h"
#include "runtime/memory.h"
#include "torch_versions.h"

#include <ATen/Context.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_foreach_add_ops.h>
#include <ATen/ops/_foreach_addcdiv_ops.h>
#include <ATen/ops/_foreach_addcmul_ops.h>
#include <ATen/ops/_foreach_div_ops.h>
#include <ATen/ops/_foreach_lerp_ops.h>
#include <ATen/ops/_foreach_mul_ops.h>
#include <ATen/ops/_foreach_sqrt_ops.h>
#include <ATen/ops/_log_softmax_backward_data_ops.h>
#include <ATen/ops/_log_softmax_ops.h>
#include <ATen/ops/_softmax_backward_data_ops.h>
#include <ATen/ops/_softmax_ops.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/addmm_ops.h>
#include <ATen/ops/bmm_ops.h>
#include <ATen/ops/clamp_min_ops.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/fill_ops.h>
#include <ATen/ops/gelu_backward_ops.h>
#include <ATen/ops/gelu_ops.h>
#include <ATen/ops/mean_ops.h>
#include <ATen/ops/mm_ops.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/native_layer_norm_backward_ops.h>
#include <ATen/ops/native_layer_norm_ops.h>
#include <ATen/ops/nll_loss_backward_ops.h>
#include <ATen/ops/nll_loss_forward_ops.h>
#include <ATen/ops/relu_ops.h>
#include <ATen/ops/sigmoid_backward_ops.h>
#include <ATen/ops/sigmoid_ops.h>
#include <ATen/ops/silu_ops.h>
#include <ATen/ops/sub_ops.h>
#include <ATen/ops/sum_ops.h>
#include <ATen/ops/tanh_backward_ops.h>
#include <ATen/ops/tanh_ops.h>
#include <ATen/ops/threshold_backward_ops.h>
#include <ATen/ops/zero_ops.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace sim::fast_path {

namespace {

// Whether all tensors of a call are on one device, and memory that a kernel of the host can work on in its place.
// Float16 is left to the fallback, which upcasts it (upcast.cpp).
class OneDevice {
 public:
  explicit OneDevice(bool takes_numbers) : takes_numbers_(takes_numbers) {}

  template <class Argument>
  bool takes(const Argument& argument) {
    if constexpr (std::is_same_v<Argument, at::Tensor>) {
      return takes_tensor(argument);
    } else if constexpr (std::is_same_v<Argument, SIM_OPTIONAL<at::Tensor>>) {
      return !argument.has_value() || takes_tensor(*argument);
    } else if constexpr (std::is_same_v<Argument, at::TensorList>) {
      return std::all_of(argument.begin(), argument.end(), [&](const at::Tensor& each) {
        return takes_defined(each) && !each.is_inference();
      });
    } else if constexpr (
        std::is_same_v<Argument, at::ScalarType> || std::is_same_v<Argument, SIM_OPTIONAL<at::ScalarType>>) {
      return argument != at::kHalf;
    } else {
      return true;
    }
  }
  bool found() const {
    return index_ >= 0;
  }
  c10::DeviceIndex index() const {
    return index_;
  }
  // The type of the first tensor, which decides whether CUDA has it.
  at::ScalarType first_type() const {
    return first_type_;
  }
  bool has_one_type() const {
    return has_one_type_;
  }

 private:
  // Not inlined: the compiler would make a copy of it for each operator's arguments.
  [[gnu::noinline]] bool takes_tensor(const at::Tensor& tensor) {
    return !tensor.defined() || takes_defined(tensor) || takes_number(tensor);
  }

  bool takes_defined(const at::Tensor& tensor) {
    if (!is_plain(tensor)) {
      return false;
    }
    const auto device = tensor.device();
    const auto type = tensor.scalar_type();
    first_type_ = found() ? first_type_ : type;
    has_one_type_ = has_one_type_ && type == first_type_;
    index_ = found() ? index_ : device.index();
    return index_ == device.index();
  }

  // A Python number arrives as a tensor of the CPU, which TensorIterator lets join the device of a tensor before it.
  bool takes_number(const at::Tensor& tensor) const {
    return takes_numbers_ && found() && tensor.unsafeGetTensorImpl()->is_wrapped_number() && tensor.device().is_cpu();
  }

  bool takes_numbers_;
  c10::DeviceIndex index_ = -1;
  at::ScalarType first_type_ = at::ScalarType::Undefined;
  bool has_one_type_ = true;
};

// A host alias of an argument; the argument itself if it is no tensor.
template <class Argument>
decltype(auto) to_host(Argument& argument) {
  if constexpr (std::is_same_v<std::remove_const_t<Argument>, at::Tensor>) {
    return kept_alias(argument);
  } else if constexpr (std::is_same_v<std::remove_const_t<Argument>, SIM_OPTIONAL<at::Tensor>>) {
    return argument.has_value() ? SIM_OPTIONAL<at::Tensor>(kept_alias(*argument)) : SIM_OPTIONAL<at::Tensor>();
  } else if constexpr (std::is_same_v<std::remove_const_t<Argument>, at::TensorList>) {
    std::vector<at::Tensor> hosts;
    hosts.reserve(argument.size());
    for (const at::Tensor& each : argument) {
      hosts.push_back(kept_alias(each));
    }
    return hosts;
  } else {
    return (argument);
  }
}

at::Tensor to_device(at::Tensor host, c10::DeviceIndex index) {
  return adopt_result(std::move(host), index);
}

std::vector<at::Tensor> to_device(std::vector<at::Tensor> hosts, c10::DeviceIndex index) {
  for (at::Tensor& each : hosts) {
    each = to_device(std::move(each), index);
  }
  return hosts;
}

template <class... Tensors>
std::tuple<Tensors...> to_device(std::tuple<Tensors...> hosts, c10::DeviceIndex index) {
  return std::apply([&](auto&... host) { return std::tuple<Tensors...>(to_device(std::move(host), index)...); }, hosts);
}

// The boxed kernel that gets an operator's other calls, if it is not the one that composites.cpp has for it.
template <class Operator>
constexpr c10::KernelFunction::BoxedKernelFunction_withDispatchKeys* kOwnBoxed = nullptr;
template <>
constexpr auto* kOwnBoxed<at::_ops::_softmax> = &run_softmax;
template <>
constexpr auto* kOwnBoxed<at::_ops::_log_softmax> = &run_softmax;
template <>
constexpr auto* kOwnBoxed<at::_ops::_softmax_backward_data> = &run_softmax_backward;
template <>
constexpr auto* kOwnBoxed<at::_ops::_log_softmax_backward_data> = &run_softmax_backward;

// Types that are left to the fallback, too.
constexpr TypeSet kWidened = TypeSet{1} << static_cast<unsigned>(at::kComplexHalf);

// What a kernel knows of its operator since its first call.
struct Known {
  c10::OperatorHandle op;
  TypeSet refused;
  c10::BoxedKernel boxed;
};

c10::BoxedKernel boxed_kernel(
    const c10::OperatorHandle& op, bool is_foreach, c10::KernelFunction::BoxedKernelFunction_withDispatchKeys* own) {
  if (own == &run_softmax) {
    return c10::BoxedKernel::makeFromFunction<&run_softmax>();
  }
  if (own == &run_softmax_backward) {
    return c10::BoxedKernel::makeFromFunction<&run_softmax_backward>();
  }
  if (is_foreach) {
    return c10::BoxedKernel::makeFromFunction<&run_each>();
  }
  const bool is_structured = op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional) &&
      kernel_checks_placement(op.schema());
  return is_structured ? c10::BoxedKernel::makeFromFunction<&run_structured>()
                       : c10::BoxedKernel::makeFromFunction<&run_on_host>();
}

// No template: the compiler takes its time for each operator's code.
Known find(
    const char* name, const char* overload, bool is_foreach,
    c10::KernelFunction::BoxedKernelFunction_withDispatchKeys* own) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
  return {op, refused_types(op.schema()) | kWidened, boxed_kernel(op, is_foreach, own)};
}

// The operator whose CUDA kernel takes tensors of one type only (types.cpp).
template <class Operator>
constexpr bool kNeedsOneType = std::is_same_v<Operator, at::_ops::native_layer_norm>;

// Whether a kernel may run for these tensors. No template, as above.
bool may_run(const Known& known, const OneDevice& device, bool needs_one_type) {
  return device.found() && !contains(known.refused, device.first_type()) &&
      (!needs_one_type || device.has_one_type()) && !at::globalContext().deterministicAlgorithms();
}

std::string full_name(const char* name, const char* overload) {
  const std::string base = name + std::strlen("aten::");
  return *overload == 0 ? base : base + "." + overload;
}

template <class Operator, class Schema = typename Operator::schema>
struct Unboxed;

template <class Operator, class Result, class... Arguments>
struct Unboxed<Operator, Result(Arguments...)> {
  static Result call(c10::DispatchKeySet keys, Arguments... arguments) {
    OneDevice device(kTakesNumbers<Operator>);
    static const Known known = find(Operator::name, Operator::overload_name, kIsForeach, kOwnBoxed<Operator>);
    const bool takes_all = (device.takes(arguments) && ...) && may_run(known, device, kNeedsOneType<Operator>);
    if (!takes_all ||
        (kIsForeach && !c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::AutogradFunctionality))) {
      return c10::impl::BoxedKernelWrapper<Result(Arguments...)>::call(
          known.boxed, known.op, keys, std::forward<Arguments>(arguments)...);
    }
    check_context();
    agree_on_threads();
    if constexpr (std::is_void_v<Result>) {
      run(to_host(arguments)...);
      bump_versions(std::get<0>(std::tie(arguments...)));
    } else if constexpr (std::is_same_v<Result, at::Tensor&>) {
      run(to_host(arguments)...);
      return std::get<0>(std::tie(arguments...));
    } else {
      try {
        return to_device(run(to_host(arguments)...), device.index());
      } catch (const c10::Error& error) {
        assert_on_device(known.op.schema(), error);
        throw;
      }
    }
  }

  static void register_in(Registrar& registrar, const std::string& name) {
    registrar.impl(name, TORCH_FN(call));
  }

 private:
  template <class... Hosts>
  static decltype(auto) run(Hosts&&... hosts) {
    const at::AutoDispatchBelowADInplaceOrView below;
    return HostKernel<Operator>::call(std::forward<Hosts>(hosts)...);
  }

  static constexpr bool kIsForeach = (std::is_same_v<Arguments, at::TensorList> || ...);
};

struct Registration {
  const char* name;
  const char* overload;
  void (*register_in)(Registrar& registrar, const std::string& name);
};

// A loop: the compiler takes longer for one function that has the code of all registrations.
template <class... Operators>
void register_unboxed(Registrar& registrar) {
  constexpr Registration kAll[] = {{Operators::name, Operators::overload_name, &Unboxed<Operators>::register_in}...};
  for (const auto& each : kAll) {
    each.register_in(registrar, full_name(each.name, each.overload));
  }
}

}  // namespace

void register_kernels(Registrar& registrar) {
  namespace ops = at::_ops;
  register_unboxed<
      ops::mm, ops::bmm, ops::addmm, ops::relu, ops::clamp_min, ops::threshold_backward, ops::sum_dim_IntList,
      ops::mean_dim, ops::add_Tensor, ops::sub_Tensor, ops::mul_Tensor, ops::div_Tensor, ops::tanh, ops::tanh_backward,
      ops::sigmoid, ops::sigmoid_backward, ops::gelu, ops::gelu_backward, ops::silu, ops::nll_loss_forward,
      ops::nll_loss_backward, ops::native_layer_norm, ops::native_layer_norm_backward, ops::_foreach_add__Scalar,
      ops::_foreach_add__List, ops::_foreach_mul__Scalar, ops::_foreach_lerp__Scalar, ops::_foreach_addcmul__Scalar,
      ops::_foreach_addcdiv__Scalar, ops::_foreach_addcdiv__ScalarList, ops::_foreach_div__ScalarList,
      ops::_foreach_sqrt, ops::_softmax, ops::_softmax_backward_data, ops::_log_softmax,
      ops::_log_softmax_backward_data, ops::add__Tensor, ops::mul__Tensor, ops::fill__Scalar, ops::zero_>(registrar);
}

}  // namespace sim::fast_path
