// Collectives: a c10d backend for this device type alone, on top of a Gloo group.
//
// Contracts held: torch/csrc/distributed/c10d/Backend.hpp and Work.hpp. Only the device type "sim" is registered, as NCCL
// registers "cuda" only, so a collective on a CPU tensor fails with PyTorch's own "No backend type associated with device
// type cpu". Results and futures hold the device tensors, for DDP's reducer reads the future's value.
// Gloo has no AVG: it is a SUM, divided when the work is done (truncated for integers, as NCCL does).
#include "sim.h"

#if SIM_HAS_COLLECTIVES
#include "collectives.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/cat.h>
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>

#include <mutex>

namespace sim {

namespace {

using c10d::OpType;
using Tensors = std::vector<at::Tensor>;
using TensorLists = std::vector<Tensors>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

TensorLists host_lists(const TensorLists& lists) {
  TensorLists aliases;
  for (const auto& list : lists) {
    aliases.push_back(host_aliases(list));
  }
  return aliases;
}

Tensors flatten(const TensorLists& lists) {
  Tensors flat;
  for (const auto& list : lists) {
    flat.insert(flat.end(), list.begin(), list.end());
  }
  return flat;
}

class Work final : public c10d::Work {
 public:
  // `finish` runs once, when the host's work is done and before anybody is told.
  Work(WorkPtr host, Tensors outputs, OpType type, std::function<void()> finish)
      : c10d::Work(-1, type), host_(std::move(host)), outputs_(std::move(outputs)), finish_(std::move(finish)) {}

  bool isCompleted() override {
    const bool done = host_->isCompleted();
    if (done && host_->isSuccess()) {
      finish();
    }
    return done;
  }
  bool isSuccess() const override {
    return host_->isSuccess();
  }
  std::exception_ptr exception() const override {
    return host_->exception();
  }
  int sourceRank() const override {
    return host_->sourceRank();
  }
  Tensors result() override {
    return outputs_;
  }
  void synchronize() override {
    host_->synchronize();
    finish();
  }
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override {
    const bool done = host_->wait(timeout);
    finish();
    return done;
  }
  void abort() override {
    host_->abort();
  }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    const std::lock_guard<std::mutex> lock(future_mutex_);
    if (future_ == nullptr) {
      future_ = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::ofTensors(), devices());
      auto self = c10::intrusive_ptr<Work>::unsafe_reclaim_from_nonowning(this);
      host_->getFuture()->addCallback([self](c10::ivalue::Future& host) {
        if (host.hasError()) {
          self->future_->setError(host.exception_ptr());
          return;
        }
        self->finish();
        self->future_->markCompleted(c10::IValue(self->outputs_));
      });
    }
    return future_;
  }

 private:
  void finish() {
    std::call_once(finished_, [this] {
      if (finish_) {
        const at::AutoDispatchBelowADInplaceOrView below;
        finish_();
      }
    });
  }
  std::vector<c10::Device> devices() const {
    return outputs_.empty() ? std::vector<c10::Device>{} : std::vector<c10::Device>{outputs_.front().device()};
  }

  WorkPtr host_;
  Tensors outputs_;
  std::function<void()> finish_;
  std::once_flag finished_;
  std::mutex future_mutex_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

WorkPtr wrap(WorkPtr host, Tensors outputs, OpType type, std::function<void()> finish = nullptr) {
  return c10::make_intrusive<Work>(std::move(host), std::move(outputs), type, std::move(finish));
}

void divide(const Tensors& sums, int64_t by) {
  for (at::Tensor sum : sums) {
    if (at::isIntegralType(sum.scalar_type(), /*includeBool=*/true)) {
      sum.div_(by, "trunc");
    } else {
      sum.div_(by);
    }
  }
}

// Replaces an AVG in `options` by SUM and gives what is left to do to the host tensors.
template <class Options>
std::function<void()> replace_average(Options& options, const Tensors& reduced, int64_t size) {
  if (options.reduceOp != c10d::ReduceOp::AVG) {
    return nullptr;
  }
  options.reduceOp = c10d::ReduceOp::SUM;
  return [reduced, size] { divide(reduced, size); };
}

// Gloo's reductions reduce whole tensors; each rank then keeps its own part of the sum.
c10d::AllreduceOptions all_reduce_options(const c10d::ReduceScatterOptions& options) {
  c10d::AllreduceOptions same;
  same.reduceOp = options.reduceOp;
  same.timeout = options.timeout;
  return same;
}

// What DDP's logger asks for the times of its phases; it warns about a device that has none.
class Timer final : public c10d::Timer {
 public:
  explicit Timer(c10::Device /*device*/) {}

  SIM_OPTIONAL<int64_t> measureDifference(Event start, Event end) override {
    const int64_t from = getTimeRef(start), to = getTimeRef(end);
    if (from == c10d::kUnsetTime || to == c10d::kUnsetTime || to < from) {
      return {};
    }
    return to - from;
  }
};

}  // namespace

static const bool timer_registered = [] {
  c10d::TimerRegistry()->Register(kDevice, [](c10::Device device) { return std::unique_ptr<c10d::Timer>(new Timer(device)); });
  return true;
}();

Collectives::Collectives(c10::intrusive_ptr<c10d::Backend> host)
    : c10d::Backend(host->getRank(), host->getSize()), host_(std::move(host)) {}

WorkPtr Collectives::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  auto hosts = host_aliases(tensors);
  return wrap(host_->broadcast(hosts, options), tensors, OpType::BROADCAST);
}

WorkPtr Collectives::allreduce(Tensors& tensors, const c10d::AllreduceOptions& given) {
  auto hosts = host_aliases(tensors);
  auto options = given;
  auto finish = replace_average(options, hosts, getSize());
  return wrap(host_->allreduce(hosts, options), tensors, OpType::ALLREDUCE, std::move(finish));
}

WorkPtr Collectives::allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& given) {
  auto hosts = host_aliases(tensors);
  auto options = given;
  auto finish = replace_average(options, hosts, getSize());
  return wrap(host_->allreduce_coalesced(hosts, options), tensors, OpType::ALLREDUCE_COALESCED, std::move(finish));
}

WorkPtr Collectives::reduce(Tensors& tensors, const c10d::ReduceOptions& given) {
  auto hosts = host_aliases(tensors);
  auto options = given;
  auto finish = replace_average(options, hosts, getSize());
  if (options.rootRank != getRank()) {
    finish = nullptr;  // only the root's tensor holds the sum
  }
  return wrap(host_->reduce(hosts, options), tensors, OpType::REDUCE, std::move(finish));
}

WorkPtr Collectives::allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  auto to = host_lists(outputs);
  auto from = host_aliases(inputs);
  return wrap(host_->allgather(to, from, options), flatten(outputs), OpType::ALLGATHER);
}

WorkPtr Collectives::_allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) {
  auto whole = host_alias(output);
  TORCH_CHECK(
      whole.numel() == input.numel() * getSize(), "output tensor size must be equal to world_size times input tensor size");
  TensorLists parts{whole.view({getSize(), -1}).unbind(0)};
  for (auto& part : parts.front()) {
    part = part.view(input.sizes());
  }
  Tensors from{host_alias(input)};
  return wrap(host_->allgather(parts, from, options), {output}, OpType::_ALLGATHER_BASE);
}

WorkPtr Collectives::allgather_coalesced(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  auto to = host_lists(outputs);
  auto from = host_aliases(inputs);
  return wrap(host_->allgather_coalesced(to, from, options), flatten(outputs), OpType::ALLGATHER_COALESCED);
}

WorkPtr Collectives::gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& options) {
  auto to = host_lists(outputs);
  auto from = host_aliases(inputs);
  return wrap(host_->gather(to, from, options), flatten(outputs), OpType::GATHER);
}

WorkPtr Collectives::scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& options) {
  auto to = host_aliases(outputs);
  auto from = host_lists(inputs);
  return wrap(host_->scatter(to, from, options), outputs, OpType::SCATTER);
}

WorkPtr Collectives::reduce_scatter(Tensors& outputs, TensorLists& inputs, const c10d::ReduceScatterOptions& given) {
  TORCH_CHECK(outputs.size() == 1 && inputs.size() == 1, "reduce_scatter takes one output tensor and one list of inputs");
  Tensors flat;
  for (const auto& part : host_aliases(inputs.front())) {
    flat.push_back(part.reshape({-1}));
  }
  return reduce_scatter_flat(outputs.front(), at::cat(flat), given, OpType::REDUCE_SCATTER);
}

WorkPtr Collectives::_reduce_scatter_base(at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& given) {
  return reduce_scatter_flat(output, host_alias(input).reshape({-1}).clone(), given, OpType::_REDUCE_SCATTER_BASE);
}

WorkPtr Collectives::reduce_scatter_flat(
    at::Tensor output, const at::Tensor& sums, const c10d::ReduceScatterOptions& given, OpType type) {
  TORCH_CHECK(
      sums.numel() == output.numel() * getSize(), "input tensor must be the same size as output size times world size");
  Tensors reduced{sums};
  auto options = all_reduce_options(given);
  auto divide_sums = replace_average(options, reduced, getSize());
  const auto host_output = host_alias(output);
  const auto own = sums.narrow(0, getRank() * output.numel(), output.numel()).view(output.sizes());
  auto finish = [divide_sums, host_output, own] {
    if (divide_sums) {
      divide_sums();
    }
    host_output.copy_(own);
  };
  return wrap(host_->allreduce(reduced, options), {std::move(output)}, type, std::move(finish));
}

WorkPtr Collectives::alltoall_base(
    at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_split_sizes, std::vector<int64_t>& input_split_sizes,
    const c10d::AllToAllOptions& options) {
  auto to = host_alias(output);
  auto from = host_alias(input);
  return wrap(
      host_->alltoall_base(to, from, output_split_sizes, input_split_sizes, options), {output}, OpType::ALLTOALL_BASE);
}

// Gloo has the flat form only.
WorkPtr Collectives::alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) {
  const auto flat = [](const Tensors& parts) {
    Tensors rows;
    for (const auto& part : parts) {
      rows.push_back(part.reshape({-1}));
    }
    return at::cat(rows);
  };
  const auto lengths = [](const Tensors& parts) {
    std::vector<int64_t> all;
    for (const auto& part : parts) {
      all.push_back(part.numel());
    }
    return all;
  };
  const auto to = host_aliases(outputs);
  auto received = flat(to);
  auto sent = flat(host_aliases(inputs));
  auto output_lengths = lengths(outputs);
  auto input_lengths = lengths(inputs);
  auto finish = [to, received, output_lengths] {
    const auto parts = received.split_with_sizes(output_lengths);
    for (size_t i = 0; i < to.size(); ++i) {
      to[i].copy_(parts[i].view(to[i].sizes()));
    }
  };
  return wrap(
      host_->alltoall_base(received, sent, output_lengths, input_lengths, options), outputs, OpType::ALLTOALL,
      std::move(finish));
}

WorkPtr Collectives::send(Tensors& tensors, int to, int tag) {
  auto hosts = host_aliases(tensors);
  return wrap(host_->send(hosts, to, tag), tensors, OpType::SEND);
}

WorkPtr Collectives::recv(Tensors& tensors, int from, int tag) {
  auto hosts = host_aliases(tensors);
  return wrap(host_->recv(hosts, from, tag), tensors, OpType::RECV);
}

WorkPtr Collectives::recvAnysource(Tensors& tensors, int tag) {
  auto hosts = host_aliases(tensors);
  return wrap(host_->recvAnysource(hosts, tag), tensors, OpType::RECVANYSOURCE);
}

WorkPtr Collectives::barrier(const c10d::BarrierOptions& options) {
  return wrap(host_->barrier(options), {}, OpType::BARRIER);
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

}  // namespace sim

#endif
