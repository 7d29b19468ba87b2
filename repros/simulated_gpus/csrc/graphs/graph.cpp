// Capturing CUDA graphs.
//
// Contract held: ATen/cuda/CUDAGraph.cpp and CUDAGraphsUtils.cuh, for one capture at a time. Kernels are captured by a
// dispatch key that the capturing thread includes (autograd's threads take it over with the rest of its state), so
// calls outside a capture pay nothing. Which stream of the thread a call is on is not asked.
#include "graphs/graph.h"

#include "graphs/capture.h"
#include "registrar.h"
#include "runtime/cuda_errors.h"
#include "runtime/device.h"
#include "runtime/generator.h"
#include "runtime/memory.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <atomic>
#include <string>

namespace sim::graph {

namespace {

std::atomic<Graph*> capturing{nullptr};

// Whether an operator's own kernel calls others, which are captured in its place: one of another library's, unless it
// runs on the host as a whole.
bool calls_others(const c10::OperatorHandle& op) {
  return op.schema().name().rfind("aten::", 0) != 0 && op.schema().name().rfind("prims::", 0) != 0 &&
      op.hasKernelForDispatchKey(c10::DispatchKey::CUDA);
}

void capture(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  constexpr c10::DispatchKeySet kBelow(c10::DispatchKeySet::FULL_AFTER, kCaptureKey);
  Graph* graph = capturing.load();
  const auto& schema = op.schema();
  TORCH_CHECK_NOT_IMPLEMENTED(
      schema.name().rfind("c10d::", 0) != 0,
      "collectives in a CUDA graph are not simulated; capture what is between them");
  if (graph == nullptr || calls_others(op)) {
    op.redispatchBoxed(keys & kBelow, stack);
    return;
  }
  const auto given = torch::jit::last(*stack, schema.arguments().size()).vec();
  for (const c10::IValue& value : given) {
    if (value.isGenerator()) {
      graph->check_generator(value.toGenerator());
    }
  }
  const c10::impl::ExcludeDispatchKeyGuard once(kCaptureKey);
  auto arguments = graph->recording().take(schema, given);
  op.redispatchBoxed(keys & kBelow, stack);
  graph->recording().add(op, std::move(arguments), given, torch::jit::last(*stack, schema.returns().size()));
}

const bool registered = [] {
  Registrar(kCaptureKey).fallback(c10::KernelFunction::makeFromBoxedFunction<&capture>());
  return true;
}();

}  // namespace

bool is_capturing() {
  return c10::impl::tls_local_dispatch_key_set().included_.has(kCaptureKey);
}

void refuse_in_capture() {
  if (is_capturing()) {
    if (Graph* graph = capturing.load()) {
      graph->invalidate();
    }
    throw_cuda_error(kCaptureUnsupported);
  }
}

void refuse_generator_in_capture(const std::string& attempt) {
  TORCH_CHECK(
      !is_capturing(), attempt,
      " during CUDA graph capture. If you need this call to be captured, please file an issue. Current "
      "cudaStreamCaptureStatus: cudaStreamCaptureStatusActive");
}

Graph::~Graph() {
  reset();
}

void Graph::register_generator(const at::Generator& generator) {
  refuse_generator_in_capture("Cannot register the state during capturing stage.");
  generators_.push_back(generator);
}

void Graph::check_generator(const at::Generator& generator) const {
  const bool is_known = !generator.defined() || generator.device().type() != kDevice ||
      generator == default_generator(generator.device().index()) ||
      std::find(generators_.begin(), generators_.end(), generator) != generators_.end();
  TORCH_CHECK(is_known, "Attempt to increase offset for a CUDA generator not in capture mode.");
}

void Graph::capture_begin() {
  TORCH_CHECK(
      !is_captured_,
      "This CUDAGraph instance already owns a captured graph. To capture a new graph, create a new instance.");
  device_ = current_device();
  stream_ = current_stream(device_);
  TORCH_CHECK(
      stream_ != 0,
      "CUDA graphs must be captured on a non-default stream. (However, after capture, it's ok to replay them on the "
      "default stream.)");
  if (is_capturing() || capturing.load() != nullptr) {
    throw_cuda_error(kIllegalState);
  }
  recording_ = std::make_unique<Recording>();
  is_invalid_ = false;
  for (c10::DeviceIndex index = 0; index < device_count(); ++index) {
    states_.emplace_back(default_generator(index), at::Tensor());
  }
  for (const at::Generator& generator : generators_) {
    states_.emplace_back(generator, at::Tensor());
  }
  for (size_t i = 0, count = states_.size(); draws_from_cpu() && i < count; ++i) {
    states_.emplace_back(cpu_source(states_[i].first), at::Tensor());  // restored after its device's, which seeds it
  }
  for (auto& [generator, state] : states_) {
    state = generator.get_state();
  }
  capturing = this;
  c10::impl::tls_set_dispatch_key_included(kCaptureKey, true);
}

// Ends the capture: nothing was drawn in it.
void Graph::leave() {
  c10::impl::tls_set_dispatch_key_included(kCaptureKey, false);
  capturing = nullptr;
  recording_->finish();
  for (auto& [generator, state] : states_) {
    generator.set_state(state);
  }
  states_.clear();
}

void Graph::capture_end() {
  TORCH_CHECK(current_stream(current_device()) == stream_, "Capture must end on the same stream it began on.");
  TORCH_CHECK(capturing.load() == this, "capture_end() called before capture_begin().");
  leave();
  if (is_invalid_) {
    recording_.reset();
    throw_cuda_error(kCaptureInvalidated);
  }
  if (recording_->is_empty()) {
    TORCH_WARN(
        "The CUDA Graph is empty. This usually means that the graph was attempted to be captured on wrong device or "
        "stream.");
  }
  is_captured_ = true;
}

void Graph::replay() {
  TORCH_CHECK(is_captured_, "Called CUDAGraph::replay without a preceding successful capture.");
  check_context();
  const c10::DeviceGuard guard(c10::Device(kDevice, device_));
  recording_->replay();
}

void Graph::reset() {
  if (capturing.load() == this) {
    leave();
  }
  recording_.reset();
  generators_.clear();
  is_captured_ = false;
}

}  // namespace sim::graph
