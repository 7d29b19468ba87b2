// Recurrent layers' calls of cuDNN: `lstm` and the others call `_cudnn_rnn` on CUDA.
//
// Contracts held: ATen/native/cudnn/RNN.cpp (the calls) and autocast_mode.cpp (the cast of their arguments). Which
// calls cuDNN takes is PyTorch's own decision (`cudnn_is_acceptable`).
#include "kernels/cudnn_rnn.h"

#include "dispatch/fallback.h"
#include "kernels/kernels.h"
#include "runtime/cudnn.h"
#include "runtime/device.h"
#include "torch_versions.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/RNN.h>
#include <ATen/ops/_cudnn_rnn.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <tuple>
#include <vector>

// As ATen/autocast_mode.h declares them. That header includes those of all operators.
namespace at::autocast {
#if SIM_TORCH_AT_LEAST(2, 4)
TORCH_API bool is_autocast_enabled(at::DeviceType device_type);
TORCH_API at::ScalarType get_autocast_dtype(at::DeviceType device_type);
#else
TORCH_API bool is_enabled();
TORCH_API at::ScalarType get_autocast_gpu_dtype();
#endif
TORCH_API Tensor cached_cast(at::ScalarType to_type, const Tensor& arg, at::DeviceType device_type);
}  // namespace at::autocast

namespace sim::cudnn_layers {

namespace {

using at::Tensor;
using MaybeTensor = SIM_OPTIONAL<Tensor>;

thread_local bool computes = false;

bool autocasts() {
#if SIM_TORCH_AT_LEAST(2, 4)
  return at::autocast::is_autocast_enabled(kDevice);
#else
  return at::autocast::is_enabled();
#endif
}

// The call that CUDA makes, with the arguments in autocast's type where it is on.
std::tuple<Tensor, Tensor, Tensor> call_cudnn(
    Tensor input, Tensor hx, Tensor cx, at::TensorList parameters, const RecurrentCall& set) {
  auto weight = parameters.vec();
  if (autocasts()) {
#if SIM_TORCH_AT_LEAST(2, 4)
    const auto type = at::autocast::get_autocast_dtype(kDevice);
#else
    const auto type = at::autocast::get_autocast_gpu_dtype();
#endif
    const auto cast = [&](Tensor& tensor) {
      tensor = tensor.defined() ? at::autocast::cached_cast(type, tensor, kDevice) : tensor;
    };
    cast(input);
    cast(hx);
    cast(cx);
    std::for_each(weight.begin(), weight.end(), cast);
  }
  const c10::impl::ExcludeDispatchKeyGuard cast_already(c10::autocast_dispatch_keyset);
  const bool projects = cx.defined() && cx.size(2) != hx.size(2);
  auto results = at::_cudnn_rnn(
      input, weight, (set.has_biases ? 4 : 2) + (projects ? 1 : 0), /*weight_buf=*/{}, hx,
      cx.defined() ? MaybeTensor(cx) : MaybeTensor(), set.mode, projects ? cx.size(2) : hx.size(2),
      projects ? hx.size(2) : 0, set.layers, set.batch_first, set.dropout, set.train, set.bidirectional,
      set.batch_sizes, /*dropout_state=*/{});
  return {std::get<0>(results), std::get<1>(results), std::get<2>(results)};
}

std::vector<int64_t> numbers(const Tensor& batch_sizes) {
  TORCH_CHECK(batch_sizes.dim() == 1, "batch_sizes tensor should be 1D");
  TORCH_CHECK(batch_sizes.device().is_cpu(), "batch_sizes tensor should be on CPU, but got ", batch_sizes.device());
  return {batch_sizes.data_ptr<int64_t>(), batch_sizes.data_ptr<int64_t>() + batch_sizes.size(0)};
}

void call_lstm(
    Tensor& output, Tensor& hy, Tensor& cy, const Tensor& input, at::TensorList state, at::TensorList weight,
    bool has_biases, int64_t layers, double dropout, bool train, bool bidirectional, bool batch_first) {
  std::tie(output, hy, cy) = call_cudnn(
      input, state[0], state[1], weight, {kLstm, has_biases, layers, batch_first, dropout, train, bidirectional, {}});
}

void call_packed_lstm(
    Tensor& output, Tensor& hy, Tensor& cy, const Tensor& data, const Tensor& batch_sizes, at::TensorList state,
    at::TensorList weight, bool has_biases, int64_t layers, double dropout, bool train, bool bidirectional) {
  std::tie(output, hy, cy) = call_cudnn(
      data, state[0], state[1], weight,
      {kLstm, has_biases, layers, /*batch_first=*/false, dropout, train, bidirectional, numbers(batch_sizes)});
}

template <RecurrentMode mode>
void call_one_state(
    Tensor& output, Tensor& hy, const Tensor& input, const Tensor& hx, at::TensorList weight, bool has_biases,
    int64_t layers, double dropout, bool train, bool bidirectional, bool batch_first) {
  Tensor none;
  std::tie(output, hy, none) = call_cudnn(
      input, hx, Tensor(), weight, {mode, has_biases, layers, batch_first, dropout, train, bidirectional, {}});
}

template <RecurrentMode mode>
void call_packed_one_state(
    Tensor& output, Tensor& hy, const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, at::TensorList weight,
    bool has_biases, int64_t layers, double dropout, bool train, bool bidirectional) {
  Tensor none;
  std::tie(output, hy, none) = call_cudnn(
      data, hx, Tensor(), weight,
      {mode, has_biases, layers, /*batch_first=*/false, dropout, train, bidirectional, numbers(batch_sizes)});
}

const bool stubs_set = [] {
  at::native::lstm_cudnn_stub.set_cuda_dispatch_ptr(&call_lstm);
  at::native::lstm_packed_cudnn_stub.set_cuda_dispatch_ptr(&call_packed_lstm);
  at::native::gru_cudnn_stub.set_cuda_dispatch_ptr(&call_one_state<kGru>);
  at::native::gru_packed_cudnn_stub.set_cuda_dispatch_ptr(&call_packed_one_state<kGru>);
  at::native::rnn_tanh_cudnn_stub.set_cuda_dispatch_ptr(&call_one_state<kTanh>);
  at::native::rnn_tanh_packed_cudnn_stub.set_cuda_dispatch_ptr(&call_packed_one_state<kTanh>);
  at::native::rnn_relu_cudnn_stub.set_cuda_dispatch_ptr(&call_one_state<kRelu>);
  at::native::rnn_relu_packed_cudnn_stub.set_cuda_dispatch_ptr(&call_packed_one_state<kRelu>);
  return true;
}();

void offer_cudnn(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const CuDNNOffer offer(!computes);
  run_composite(op, keys, stack);
}

}  // namespace

WithoutCuDNN::WithoutCuDNN() {
  computes = true;
}

WithoutCuDNN::~WithoutCuDNN() {
  computes = false;
}

// Under CUDA's key and under its autograd key.
void register_kernels(Registrar& registrar) {
  for (const char* name :
       {"lstm.input", "lstm.data", "gru.input", "gru.data", "rnn_tanh.input", "rnn_tanh.data", "rnn_relu.input",
        "rnn_relu.data"}) {
    registrar.impl(name, c10::KernelFunction::makeFromBoxedFunction<&offer_cudnn>());
  }
}

}  // namespace sim::cudnn_layers
