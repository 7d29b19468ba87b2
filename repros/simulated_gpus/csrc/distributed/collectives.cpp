// Collectives: a c10d backend for this device type only, on top of a Gloo group.
//
// Contracts held: torch/csrc/distributed/c10d/Backend.hpp and Work.hpp. Only the device type "cuda" is registered, as
// NCCL registers "cuda" only, so a collective on a CPU tensor fails with PyTorch's own "No backend type associated with
// device type cpu". Collectives that only move data are here; those that reduce are in reductions.cpp, and gloo.cpp
// supplies what NCCL has and Gloo lacks.
#include "distributed/collectives.h"

#include "distributed/gloo.h"
#include "distributed/work.h"
#include "torch_versions.h"

#if SIM_HAS_COLLECTIVES

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

namespace sim::collectives {

namespace {

using c10d::OpType;
using Tensors = std::vector<at::Tensor>;
using TensorLists = std::vector<Tensors>;

TensorLists lists_to_move(const TensorLists& lists) {
  TensorLists hosts;
  for (const auto& list : lists) {
    hosts.push_back(to_move(list));
  }
  return hosts;
}

Tensors flatten(const TensorLists& lists) {
  Tensors flat;
  for (const auto& list : lists) {
    flat.insert(flat.end(), list.begin(), list.end());
  }
  return flat;
}

// One row for each rank.
Tensors rows_of(const at::Tensor& whole, const at::Tensor& part, int64_t ranks) {
  auto sizes = part.sizes().vec();
  sizes.insert(sizes.begin(), ranks);
  return whole.view(sizes).unbind(0);
}

at::Tensor concatenate(const Tensors& parts) {
  Tensors flat;
  for (const auto& part : parts) {
    flat.push_back(part.reshape({-1}));
  }
  return at::cat(flat);
}

WorkPtr combine(std::vector<WorkPtr> parts, OpType type) {
  Tensors outputs;
  for (const auto& part : parts) {
    for (auto& output : part->result()) {
      outputs.push_back(std::move(output));
    }
  }
  return c10::make_intrusive<Work>(std::move(parts), std::move(outputs), type);
}

// Only later versions of PyTorch can change a backend's timeout.
template <class Backend>
auto change_timeout(Backend& host, std::chrono::milliseconds timeout, int) -> decltype(host.setTimeout(timeout)) {
  host.setTimeout(timeout);
}
template <class Backend>
void change_timeout(Backend& /*host*/, std::chrono::milliseconds /*timeout*/, long) {}

}  // namespace

Collectives::Collectives(c10::intrusive_ptr<c10d::Backend> host, c10::intrusive_ptr<c10d::Store> store)
    : c10d::Backend(host->getRank(), host->getSize()), host_(std::move(host)), store_(std::move(store)) {}

WorkPtr Collectives::make_work(WorkPtr host, Tensors outputs, OpType type, std::function<void()> finish) {
  return make_work(std::vector<WorkPtr>{std::move(host)}, std::move(outputs), type, std::move(finish));
}

WorkPtr Collectives::make_work(std::vector<WorkPtr> hosts, Tensors outputs, OpType type, std::function<void()> finish) {
  auto work = c10::make_intrusive<Work>(std::move(hosts), std::move(outputs), type, std::move(finish));
  if (coalescing_) {
    coalesced_.push_back(work);
  }
  return work;
}

void Collectives::startCoalescing() {
  coalesced_.clear();  // an exception may have left the previous batch open
  coalescing_ = true;
}

WorkPtr Collectives::endCoalescing() {
  coalescing_ = false;
  return combine(std::exchange(coalesced_, {}), OpType::COALESCED);
}

WorkPtr Collectives::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  check_device(tensors.at(0));
  auto hosts = to_move_whole(tensors);
  return make_work(host_->broadcast(hosts, options), tensors, OpType::BROADCAST);
}

WorkPtr Collectives::allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  check_device(inputs.at(0));
  if (outputs.size() == 1 && inputs.size() == 1) {
    const auto& parts = outputs.front();
    const auto same = [&](const at::Tensor& part) { return part.sizes() == parts.front().sizes(); };
    if (!std::all_of(parts.begin(), parts.end(), same)) {
      return allgather_uneven(parts, inputs.front(), options);
    }
  }
  auto to = lists_to_move(outputs);
  auto from = to_move_whole(inputs);
  return make_work(host_->allgather(to, from, options), flatten(outputs), OpType::ALLGATHER);
}

// Gloo gathers parts of one size only. For other parts each rank broadcasts its own, as NCCL's group does.
WorkPtr Collectives::allgather_uneven(
    const Tensors& outputs, const at::Tensor& input, const c10d::AllgatherOptions& options) {
  TORCH_CHECK_VALUE(
      static_cast<int>(outputs.size()) == getSize() && outputs[getRank()].sizes() == input.sizes(),
      "a rank's own part must have its input's size");
  for (const auto& part : outputs) {
    TORCH_CHECK_TYPE(part.dtype() == input.dtype(), "output tensor must have the same type as input tensor");
  }
  const auto to = to_move(outputs);
  Tensors sent;
  std::vector<WorkPtr> hosts;
  for (int root = 0; root < getSize(); ++root) {
    sent.push_back(root == getRank() ? to_move_whole(input) : at::empty(to[root].sizes(), to[root].options()));
    Tensors one{sent.back()};
    c10d::BroadcastOptions broadcast;
    broadcast.rootRank = root;
    broadcast.timeout = options.timeout;
    hosts.push_back(host_->broadcast(one, broadcast));
  }
  auto finish = [to, sent] {
    for (size_t i = 0; i < to.size(); ++i) {
      to[i].copy_(sent[i]);
    }
  };
  return make_work(std::move(hosts), outputs, OpType::ALLGATHER, std::move(finish));
}

WorkPtr Collectives::_allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) {
  check_device(input);
  TORCH_CHECK_TYPE(output.dtype() == input.dtype(), "output tensor must have the same type as input tensor");
  TORCH_CHECK_VALUE(
      output.numel() == input.numel() * getSize(),
      "output tensor size must be equal to world_size times input tensor size");
  Tensors from{to_move_whole(input)};
  TensorLists to{rows_of(to_move_whole(output), from.front(), getSize())};
  return make_work(host_->allgather(to, from, options), {output}, OpType::_ALLGATHER_BASE);
}

WorkPtr Collectives::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  std::vector<WorkPtr> parts;
  for (size_t i = 0; i < outputs.size(); ++i) {
    parts.push_back(_allgather_base(outputs[i], inputs.at(i), options));
  }
  return combine(std::move(parts), OpType::COALESCED);
}

WorkPtr Collectives::allgather_coalesced(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  check_device(inputs.at(0));
  auto to = lists_to_move(outputs);
  auto from = to_move_whole(inputs);
  return make_work(host_->allgather_coalesced(to, from, options), flatten(outputs), OpType::ALLGATHER_COALESCED);
}

WorkPtr Collectives::gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& options) {
  check_device(inputs.at(0));
  auto to = lists_to_move(outputs);
  auto from = to_move_whole(inputs);
  return make_work(host_->gather(to, from, options), flatten(outputs), OpType::GATHER);
}

WorkPtr Collectives::scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& options) {
  check_device(outputs.at(0));
  auto to = to_move_whole(outputs);
  auto from = lists_to_move(inputs);
  for (auto& list : from) {
    for (auto& part : list) {
      part = part.contiguous();
    }
  }
  return make_work(host_->scatter(to, from, options), outputs, OpType::SCATTER);
}

WorkPtr Collectives::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
  std::vector<WorkPtr> parts;
  for (size_t i = 0; i < outputs.size(); ++i) {
    parts.push_back(_reduce_scatter_base(outputs[i], inputs.at(i), options));
  }
  return combine(std::move(parts), OpType::COALESCED);
}

WorkPtr Collectives::alltoall_base(
    at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_split_sizes,
    std::vector<int64_t>& input_split_sizes, const c10d::AllToAllOptions& options) {
  check_device(input);
  auto to = to_move_whole(output);
  auto from = to_move_whole(input);
  return make_work(
      host_->alltoall_base(to, from, output_split_sizes, input_split_sizes, options), {output}, OpType::ALLTOALL_BASE);
}

// Early versions of Gloo have the flat form only, with one tensor for all ranks.
WorkPtr Collectives::alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) {
  check_device(inputs.at(0));
  const auto lengths = [](const Tensors& parts) {
    std::vector<int64_t> all;
    for (const auto& part : parts) {
      all.push_back(part.numel());
    }
    return all;
  };
  const auto to = to_move(outputs);
  const auto from = to_move(inputs);
  auto received = concatenate(to);
  auto sent = concatenate(from);
  auto received_lengths = lengths(to);
  auto sent_lengths = lengths(from);
  auto finish = [to, received, received_lengths] {
    const auto parts = received.split_with_sizes(received_lengths);
    for (size_t i = 0; i < to.size(); ++i) {
      to[i].copy_(parts[i].view(to[i].sizes()));
    }
  };
  return make_work(
      host_->alltoall_base(received, sent, received_lengths, sent_lengths, options), outputs, OpType::ALLTOALL,
      std::move(finish));
}

// A rank may send to itself within a batch, as with NCCL; Gloo has no connection for that.
WorkPtr Collectives::send(Tensors& tensors, int to, int tag) {
  auto hosts = to_move_whole(tensors);
  if (to == getRank()) {
    (*to_itself_)[tag].push_back(hosts.at(0).clone());
    return make_work(std::vector<WorkPtr>{}, tensors, OpType::SEND);
  }
  return make_work(host_->send(hosts, to, tag), tensors, OpType::SEND);
}

WorkPtr Collectives::recv(Tensors& tensors, int from, int tag) {
  auto hosts = to_move_whole(tensors);
  if (from == getRank()) {
    auto finish = [all = to_itself_, tag, host = hosts.at(0)] {
      auto& sent = (*all)[tag];
      TORCH_CHECK(!sent.empty(), "a rank that receives from itself has to send to itself in the same batch");
      host.copy_(sent.front().view(host.sizes()));
      sent.pop_front();
    };
    return make_work(std::vector<WorkPtr>{}, tensors, OpType::RECV, std::move(finish));
  }
  return make_work(host_->recv(hosts, from, tag), tensors, OpType::RECV);
}

WorkPtr Collectives::recvAnysource(Tensors& tensors, int tag) {
  auto hosts = to_move_whole(tensors);
  return make_work(host_->recvAnysource(hosts, tag), tensors, OpType::RECVANYSOURCE);
}

WorkPtr Collectives::barrier(const c10d::BarrierOptions& options) {
  return make_work(host_->barrier(options), {}, OpType::BARRIER);
}

void Collectives::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) {
  host_->monitoredBarrier(options, wait_all_ranks);
}

void Collectives::setSequenceNumberForGroup() {
  host_->setSequenceNumberForGroup();
}

uint64_t Collectives::getSequenceNumberForGroup() {
  return host_->getSequenceNumberForGroup();
}

void Collectives::setTimeout(std::chrono::milliseconds timeout) {
  change_timeout(*host_, timeout, 0);
}

}  // namespace sim::collectives

#endif
