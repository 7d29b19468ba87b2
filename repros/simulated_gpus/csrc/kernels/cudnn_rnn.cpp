// Recurrent layers, which CUDA leaves to cuDNN: `lstm` and the others call `_cudnn_rnn` there, one operator for all
// steps, with one derivative.
//
// Contracts held: ATen/native/cudnn/RNN.cpp (the calls of `_cudnn_rnn`, its checks, and that it has a derivative in
// training mode alone) and autocast_mode.cpp's cast of its arguments. Which calls cuDNN takes is PyTorch's own
// decision (`cudnn_is_acceptable`), and derivatives.yaml refuses the second derivative. The arithmetic is PyTorch's for
// devices without cuDNN, on device tensors; what its derivative needs hangs on the result that cuDNN keeps for that,
// its "reserve". Where a copy came back (hooks on saved tensors), it is computed again.
#include "dispatch/fallback.h"
#include "runtime/cudnn.h"
#include "runtime/device.h"
#include "runtime/memory.h"
#include "torch_versions.h"

#include <ATen/SavedTensorHooks.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/native/RNN.h>
#include <ATen/ops/_cudnn_rnn.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gru.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/rnn_relu.h>
#include <ATen/ops/rnn_tanh.h>
#include <ATen/ops/tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

namespace sim {

namespace {

using at::Tensor;
using MaybeTensor = SIM_OPTIONAL<Tensor>;

enum Mode : int64_t { kRelu, kTanh, kLstm, kGru };  // cudnnRNNMode_t

Tensor or_undefined(const MaybeTensor& tensor) {
  return tensor.has_value() ? *tensor : Tensor();
}

// One call of a recurrent operator, without its tensors.
struct Settings {
  int64_t mode;
  bool has_biases;
  int64_t layers;
  bool batch_first;
  double dropout;
  bool train;
  bool bidirectional;
  std::vector<int64_t> batch_sizes;
};

// The tensors of a call and its results: the output, the hidden state and, of an LSTM, the cell state.
struct Graph {
  Tensor input, hx, cx;
  std::vector<Tensor> weight;
  std::vector<Tensor> results;
};

template <class Operator>
std::vector<Tensor> run_one_state(Operator call, const Graph& graph, const Settings& set) {
  std::tuple<Tensor, Tensor> results;
  if (set.batch_sizes.empty()) {
    results = call(
        graph.input, graph.hx, graph.weight, set.has_biases, set.layers, set.dropout, set.train, set.bidirectional,
        set.batch_first);
  } else {
    results = call(
        graph.input, at::tensor(set.batch_sizes), graph.hx, graph.weight, set.has_biases, set.layers, set.dropout,
        set.train, set.bidirectional);
  }
  return {std::get<0>(results), std::get<1>(results)};
}

std::vector<Tensor> run_lstm(const Graph& graph, const Settings& set) {
  const std::vector<Tensor> state{graph.hx, graph.cx};
  const auto [output, hy, cy] = set.batch_sizes.empty()
      ? at::lstm(
            graph.input, state, graph.weight, set.has_biases, set.layers, set.dropout, set.train, set.bidirectional,
            set.batch_first)
      : at::lstm(
            graph.input, at::tensor(set.batch_sizes), state, graph.weight, set.has_biases, set.layers, set.dropout,
            set.train, set.bidirectional);
  return {output, hy, cy};
}

thread_local bool computes = false;

// While it lives, this thread's calls of recurrent operators do not take cuDNN.
struct Computing {
  Computing() {
    computes = true;
  }
  ~Computing() {
    computes = false;
  }
};

// The results, by the operator for devices without cuDNN.
std::vector<Tensor> run(const Graph& graph, const Settings& set) {
  const Computing without_cudnn;
  switch (set.mode) {
    case kLstm:
      return run_lstm(graph, set);
    case kGru:
      return run_one_state([](auto&&... each) { return at::gru(each...); }, graph, set);
    case kTanh:
      return run_one_state([](auto&&... each) { return at::rnn_tanh(each...); }, graph, set);
    default:
      return run_one_state([](auto&&... each) { return at::rnn_relu(each...); }, graph, set);
  }
}

// While it lives, this thread's hooks on saved tensors see none: cuDNN keeps what it needs for itself.
struct Unhooked {
  Unhooked() {
    at::SavedTensorDefaultHooks::set_tls_state({});
  }
  ~Unhooked() {
    at::SavedTensorDefaultHooks::set_tls_state(before);
  }
  const at::impl::SavedTensorDefaultHooksTLS before = at::SavedTensorDefaultHooks::get_tls_state();
};

// Runs a call with a graph of its own, of which the caller's autograd and its hooks see nothing.
void run_with_graph(Graph& graph, const Settings& set, std::array<bool, 4> wanted) {
  const Unhooked unhooked;
  const c10::impl::ForceDispatchKeyGuard as_at_the_top(
      c10::impl::LocalDispatchKeySet(c10::impl::PODLocalDispatchKeySet{}));
  const at::AutoGradMode on(true);
  const auto leaf = [](const Tensor& tensor, bool is_wanted) {
    return tensor.defined() ? tensor.variable_data().set_requires_grad(is_wanted) : tensor;
  };
  graph.input = leaf(graph.input, wanted[0]);
  graph.hx = leaf(graph.hx, wanted[1]);
  graph.cx = leaf(graph.cx, wanted[2]);
  for (Tensor& each : graph.weight) {
    each = leaf(each, wanted[3]);
  }
  graph.results = run(graph, set);
}

void delete_graph(void* graph) {
  delete static_cast<Graph*>(graph);
}

// A device tensor that keeps a graph.
Tensor reserve_of(std::unique_ptr<Graph> graph, c10::DeviceIndex index) {
  void* kept = graph.release();
  const auto host = at::empty({0}, at::TensorOptions(at::kByte));
  host.unsafeGetTensorImpl()->set_storage_keep_dtype(
      c10::Storage(
          c10::Storage::use_byte_size_t(), sizeof(void*),
          c10::DataPtr(kept, kept, &delete_graph, c10::Device(c10::kCPU)), /*allocator=*/nullptr, /*resizable=*/false));
  return adopt_result(host, index);
}

Graph* graph_of(const Tensor& reserve) {
  if (!is_sim(reserve)) {
    return nullptr;
  }
  return static_cast<Graph*>(host_storage(reserve.storage()).data_ptr().cast_context<Graph>(&delete_graph));
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> cudnn_rnn(
    const Tensor& input, at::TensorList weight, int64_t weight_stride, const MaybeTensor& /*weight_buf*/,
    const Tensor& hx, const MaybeTensor& cx, int64_t mode, int64_t /*hidden_size*/, int64_t proj_size, int64_t layers,
    bool batch_first, double dropout, bool train, bool bidirectional, at::IntArrayRef batch_sizes,
    const MaybeTensor& /*dropout_state*/) {
  at::native::check_attributes(input, weight, {hx, or_undefined(cx)}, /*check_dtype=*/true);
  const Settings set{mode,          weight_stride - (proj_size != 0 ? 1 : 0) == 4,
                     layers,        batch_first,
                     dropout,       train,
                     bidirectional, batch_sizes.vec()};
  auto graph = std::make_unique<Graph>(Graph{input, hx, or_undefined(cx), weight.vec(), {}});
  const auto needs = [](const Tensor& tensor) { return tensor.defined() && tensor.requires_grad(); };
  const std::array<bool, 4> wanted{
      needs(input), needs(hx), needs(graph->cx), std::any_of(weight.begin(), weight.end(), needs)};
  const bool keeps =
      train && at::GradMode::is_enabled() && std::any_of(wanted.begin(), wanted.end(), [](bool each) { return each; });
  const auto nothing = [&] { return at::empty({0}, hx.options().requires_grad(false)); };
  if (!keeps) {
    auto results = run(*graph, set);
    return {results[0], results[1], mode == kLstm ? results[2] : nothing(), nothing(), nothing()};
  }
  run_with_graph(*graph, set, wanted);
  const auto& results = graph->results;
  const auto output = results[0].variable_data(), hy = results[1].variable_data();
  const auto cy = mode == kLstm ? results[2].variable_data() : nothing();
  return {output, hy, cy, reserve_of(std::move(graph), input.device().index()), nothing()};
}

std::tuple<Tensor, Tensor, Tensor, std::vector<Tensor>> cudnn_rnn_backward(
    const Tensor& input, at::TensorList weight, int64_t weight_stride, const Tensor& /*weight_buf*/, const Tensor& hx,
    const MaybeTensor& cx, const Tensor& /*output*/, const MaybeTensor& grad_output, const MaybeTensor& grad_hy,
    const MaybeTensor& grad_cy, int64_t mode, int64_t /*hidden_size*/, int64_t proj_size, int64_t layers,
    bool batch_first, double dropout, bool train, bool bidirectional, at::IntArrayRef batch_sizes,
    const MaybeTensor& /*dropout_state*/, const Tensor& reserve, std::array<bool, 4> output_mask) {
  std::vector<Tensor> weight_gradients(weight.size());
  const std::array<Tensor, 3> given{or_undefined(grad_output), or_undefined(grad_hy), or_undefined(grad_cy)};
  if (std::none_of(given.begin(), given.end(), [](const Tensor& each) { return each.defined(); })) {
    return {Tensor(), Tensor(), Tensor(), weight_gradients};
  }
  TORCH_CHECK(train, "cudnn RNN backward can only be called in training mode");
  const Graph* graph = graph_of(reserve);
  Graph again{input, hx, or_undefined(cx), weight.vec(), {}};
  if (graph == nullptr) {
    TORCH_CHECK(dropout == 0, "Simulated GPUs: hooks on saved tensors lost the dropout mask of a recurrent layer.");
    run_with_graph(
        again,
        {mode, weight_stride - (proj_size != 0 ? 1 : 0) == 4, layers, batch_first, dropout, train, bidirectional,
         batch_sizes.vec()},
        output_mask);
    graph = &again;
  }
  std::vector<Tensor> outputs, gradients, inputs;
  for (size_t i = 0; i < graph->results.size(); ++i) {
    if (given[i].defined()) {
      outputs.push_back(graph->results[i]);
      gradients.push_back(given[i]);
    }
  }
  std::vector<Tensor> leaves{graph->input, graph->hx, graph->cx};
  leaves.insert(leaves.end(), graph->weight.begin(), graph->weight.end());
  const auto is_wanted = [&](size_t i) { return output_mask[std::min<size_t>(i, 3)] && leaves[i].defined(); };
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (is_wanted(i)) {
      inputs.push_back(leaves[i]);
    }
  }
  const c10::impl::ForceDispatchKeyGuard as_at_the_top(
      c10::impl::LocalDispatchKeySet(c10::impl::PODLocalDispatchKeySet{}));
  auto found = torch::autograd::grad(
      outputs, inputs, gradients, /*retain_graph=*/true, /*create_graph=*/false, /*allow_unused=*/true);
  for (size_t i = 0, next = 0; i < leaves.size(); ++i) {
    leaves[i] = is_wanted(i) ? found[next++] : Tensor();
  }
  std::copy(leaves.begin() + 3, leaves.end(), weight_gradients.begin());
  return {leaves[0], leaves[1], leaves[2], weight_gradients};
}

bool autocasts() {
#if SIM_TORCH_AT_LEAST(2, 4)
  return at::autocast::is_autocast_enabled(kDevice);
#else
  return at::autocast::is_enabled();
#endif
}

// The call that CUDA makes, with the arguments in autocast's type where it is on.
std::tuple<Tensor, Tensor, Tensor> call_cudnn(
    Tensor input, Tensor hx, Tensor cx, at::TensorList parameters, const Settings& set) {
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

template <Mode mode>
void call_one_state(
    Tensor& output, Tensor& hy, const Tensor& input, const Tensor& hx, at::TensorList weight, bool has_biases,
    int64_t layers, double dropout, bool train, bool bidirectional, bool batch_first) {
  Tensor none;
  std::tie(output, hy, none) = call_cudnn(
      input, hx, Tensor(), weight, {mode, has_biases, layers, batch_first, dropout, train, bidirectional, {}});
}

template <Mode mode>
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

void register_layers(torch::Library& library) {
  for (const char* name :
       {"lstm.input", "lstm.data", "gru.input", "gru.data", "rnn_tanh.input", "rnn_tanh.data", "rnn_relu.input",
        "rnn_relu.data"}) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&offer_cudnn>());
  }
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("_cudnn_rnn", &cudnn_rnn);
  library.impl("_cudnn_rnn_backward", &cudnn_rnn_backward);
  register_layers(library);
}

TORCH_LIBRARY_IMPL(aten, AutogradCUDA, library) {
  register_layers(library);
}

}  // namespace sim
