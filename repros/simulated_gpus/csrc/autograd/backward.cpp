// Which thread computes a backward pass.
//
// For a GPU it is a worker thread of autograd. Waking one costs more than a small CPU kernel, so a pass runs in its
// caller's thread if the program cannot observe the difference: no Python code and no thread-local state takes part.
#include "autograd/backward.h"

#include "torch_versions.h"

#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <c10/util/flat_hash_map.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/variable.h>

#include <atomic>
#include <cstring>
#include <typeinfo>
#include <vector>

namespace sim::backward {

namespace {

using torch::autograd::Node;

std::atomic<bool> saved_tensors_may_call{false};

// PyTorch does not export the class of an `autograd.Function`, so it is recognised by its name.
bool is_python(const Node& node) {
  return std::strcmp(typeid(node).name(), "N5torch8autograd6PyNodeE") == 0;
}

bool has_hooks(Node& node) {
#if SIM_TORCH_AT_LEAST(2, 1)
  if (node.tensor_post_acc_grad_hooks() != nullptr) {
    return true;
  }
#endif
  return !node.pre_hooks().empty() || !node.post_hooks().empty() || !node.tensor_pre_hooks().empty() ||
      !node.retains_grad_hooks().empty();
}

bool receives_subclass(const Node& node) {
  for (uint32_t index = 0; index < node.num_inputs(); ++index) {
    if (node.input_metadata(index).is_tensor_subclass()) {
      return true;
    }
  }
  return false;
}

bool is_plain_graph(std::vector<Node*> reached) {
  ska::flat_hash_set<Node*> seen(reached.begin(), reached.end());
  while (!reached.empty()) {
    Node* node = reached.back();
    reached.pop_back();
    if (is_python(*node) || has_hooks(*node) || receives_subclass(*node)) {
      return false;
    }
    for (const auto& edge : node->next_edges()) {
      if (edge.function != nullptr && seen.insert(edge.function.get()).second) {
        reached.push_back(edge.function.get());
      }
    }
  }
  return true;
}

// In early releases (2.0.1, no longer 2.13.0) a thread has its own data type for autocast: autograd's does not take the
// caller's.
bool may_autocast() {
  return (c10::impl::tls_local_dispatch_key_set().excluded_ & c10::autocast_dispatch_keyset) !=
      c10::autocast_dispatch_keyset;
}

bool is_observed() {
  return saved_tensors_may_call.load(std::memory_order_relaxed) || at::hasCallbacks() ||
      torch::autograd::AnomalyMode::is_enabled() || c10::impl::dispatch_mode_enabled() || may_autocast();
}

}  // namespace

void expect_saved_tensor_hooks() {
  saved_tensors_may_call.store(true, std::memory_order_relaxed);
}

bool can_run_in_callers_thread(const std::vector<at::Tensor>& roots) {
  if (torch::autograd::get_current_graph_task_id() != -1 || is_observed()) {
    return false;
  }
  torch::autograd::edge_list edges;  // which hold the functions: a leaf does not hold its own
  std::vector<Node*> functions;
  for (const auto& root : roots) {
    edges.push_back(torch::autograd::impl::gradient_edge(root));
    if (edges.back().function == nullptr) {
      return false;
    }
    functions.push_back(edges.back().function.get());
  }
  return is_plain_graph(std::move(functions));
}

}  // namespace sim::backward
