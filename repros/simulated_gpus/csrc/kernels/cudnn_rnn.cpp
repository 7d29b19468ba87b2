// cuDNN's recurrent layers, `_cudnn_rnn`: one operator for all steps, with one derivative.
//
// Contracts held: ATen/native/cudnn/RNN.cpp (its checks, and that it has a derivative in training mode alone);
// derivatives.yaml refuses the second derivative. The arithmetic is PyTorch's for devices without cuDNN, on device
// tensors; what its derivative needs hangs on the result that cuDNN keeps for that, its "reserve". Where a copy came
// back (hooks on saved tensors), it is computed again.
#include "kernels/cudnn_rnn.h"
#include "kernels/kernels.h"

#include "runtime/device.h"
#include "runtime/memory.h"
#include "torch_versions.h"

#include <ATen/SavedTensorHooks.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/native/RNN.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gru.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/rnn_relu.h>
#include <ATen/ops/rnn_tanh.h>
#include <ATen/ops/tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

namespace sim::cudnn_rnn {

namespace {

using at::Tensor;
using MaybeTensor = SIM_OPTIONAL<Tensor>;

Tensor or_undefined(const MaybeTensor& tensor) {
  return tensor.has_value() ? *tensor : Tensor();
}

// The tensors of a call and its results: the output, the hidden state and, of an LSTM, the cell state.
struct Graph {
  Tensor input, hx, cx;
  std::vector<Tensor> weight;
  std::vector<Tensor> results;
};

template <class Operator>
std::vector<Tensor> run_one_state(Operator call, const Graph& graph, const RecurrentCall& set) {
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

std::vector<Tensor> run_lstm(const Graph& graph, const RecurrentCall& set) {
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

// The results, by the operator for devices without cuDNN.
std::vector<Tensor> run(const Graph& graph, const RecurrentCall& set) {
  const WithoutCuDNN computing;
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
void run_with_graph(Graph& graph, const RecurrentCall& set, std::array<bool, 4> wanted) {
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

// A layer has two weights, as many biases, and one more weight if it projects.
bool has_biases(int64_t weights_of_a_layer, int64_t proj_size) {
  return weights_of_a_layer - (proj_size != 0 ? 1 : 0) == 4;
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> cudnn_rnn(
    const Tensor& input, at::TensorList weight, int64_t weight_stride, const MaybeTensor& /*weight_buf*/,
    const Tensor& hx, const MaybeTensor& cx, int64_t mode, int64_t /*hidden_size*/, int64_t proj_size, int64_t layers,
    bool batch_first, double dropout, bool train, bool bidirectional, at::IntArrayRef batch_sizes,
    const MaybeTensor& /*dropout_state*/) {
  at::native::check_attributes(input, weight, {hx, or_undefined(cx)}, /*check_dtype=*/true);
  const RecurrentCall set{mode,          has_biases(weight_stride, proj_size),
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

// The gradients of the input, the states and the weights, in this order; undefined where none is wanted.
std::vector<Tensor> gradients_of(
    const Graph& graph, const std::array<Tensor, 3>& given, const std::array<bool, 4>& wanted) {
  std::vector<Tensor> outputs, gradients, inputs;
  for (size_t i = 0; i < graph.results.size(); ++i) {
    if (given[i].defined()) {
      outputs.push_back(graph.results[i]);
      gradients.push_back(given[i]);
    }
  }
  std::vector<Tensor> leaves{graph.input, graph.hx, graph.cx};
  leaves.insert(leaves.end(), graph.weight.begin(), graph.weight.end());
  const auto is_wanted = [&](size_t i) { return wanted[std::min<size_t>(i, 3)] && leaves[i].defined(); };
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
  return leaves;
}

std::tuple<Tensor, Tensor, Tensor, std::vector<Tensor>> cudnn_rnn_backward(
    const Tensor& input, at::TensorList weight, int64_t weight_stride, const Tensor& /*weight_buf*/, const Tensor& hx,
    const MaybeTensor& cx, const Tensor& /*output*/, const MaybeTensor& grad_output, const MaybeTensor& grad_hy,
    const MaybeTensor& grad_cy, int64_t mode, int64_t /*hidden_size*/, int64_t proj_size, int64_t layers,
    bool batch_first, double dropout, bool train, bool bidirectional, at::IntArrayRef batch_sizes,
    const MaybeTensor& /*dropout_state*/, const Tensor& reserve, std::array<bool, 4> output_mask) {
  const std::array<Tensor, 3> given{or_undefined(grad_output), or_undefined(grad_hy), or_undefined(grad_cy)};
  if (std::none_of(given.begin(), given.end(), [](const Tensor& each) { return each.defined(); })) {
    return {Tensor(), Tensor(), Tensor(), std::vector<Tensor>(weight.size())};
  }
  TORCH_CHECK(train, "cudnn RNN backward can only be called in training mode");
  const Graph* graph = graph_of(reserve);
  Graph again{input, hx, or_undefined(cx), weight.vec(), {}};
  if (graph == nullptr) {
    TORCH_CHECK(dropout == 0, "Simulated GPUs: hooks on saved tensors lost the dropout mask of a recurrent layer.");
    run_with_graph(
        again,
        {mode, has_biases(weight_stride, proj_size), layers, batch_first, dropout, train, bidirectional,
         batch_sizes.vec()},
        output_mask);
    graph = &again;
  }
  auto found = gradients_of(*graph, given, output_mask);
  return {found[0], found[1], found[2], std::vector<Tensor>(found.begin() + 3, found.end())};
}

}  // namespace

void register_kernels(Registrar& registrar) {
  registrar.impl("_cudnn_rnn", &cudnn_rnn);
  registrar.impl("_cudnn_rnn_backward", &cudnn_rnn_backward);
}

}  // namespace sim::cudnn_rnn
