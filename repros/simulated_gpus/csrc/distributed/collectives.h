// The c10d backend that module.cpp exposes to Python.
#pragma once

#include "distributed/work.h"
#include "torch_versions.h"

#if SIM_HAS_COLLECTIVES
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <deque>
#include <map>
#include <memory>

namespace sim::collectives {

class Collectives final : public c10d::Backend {
 public:
  // `store` is NCCL's, in which ranks compare their devices; null for a Gloo group, which allows any.
  explicit Collectives(c10::intrusive_ptr<c10d::Backend> host, c10::intrusive_ptr<c10d::Store> store = {});

  using Tensors = std::vector<at::Tensor>;
  using TensorLists = std::vector<Tensors>;

  const std::string getBackendName() const override {
    return "nccl";
  }

  WorkPtr broadcast(Tensors&, const c10d::BroadcastOptions&) override;
  WorkPtr allreduce(Tensors&, const c10d::AllreduceOptions&) override;
  WorkPtr allreduce_coalesced(Tensors&, const c10d::AllreduceCoalescedOptions&) override;
  WorkPtr reduce(Tensors&, const c10d::ReduceOptions&) override;
  WorkPtr allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions&) override;
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions&) override;
  WorkPtr allgather_coalesced(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions&) override;
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions&) override;
  WorkPtr gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions&) override;
  WorkPtr scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions&) override;
  WorkPtr reduce_scatter(Tensors& outputs, TensorLists& inputs, const c10d::ReduceScatterOptions&) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions&) override;
  WorkPtr reduce_scatter_tensor_coalesced(
      Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions&) override;
  WorkPtr alltoall_base(
      at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_split_sizes,
      std::vector<int64_t>& input_split_sizes, const c10d::AllToAllOptions&) override;
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions&) override;
  WorkPtr send(Tensors&, int to, int tag) override;
  WorkPtr recv(Tensors&, int from, int tag) override;
  WorkPtr recvAnysource(Tensors&, int tag) override;
  WorkPtr barrier(const c10d::BarrierOptions&) override;
  void monitoredBarrier(const c10d::BarrierOptions&, bool wait_all_ranks) override;
  void setSequenceNumberForGroup() override;
  uint64_t getSequenceNumberForGroup() override;
  bool supportsCoalescing() const {
    return true;
  }
  void startCoalescing() override;
  WorkPtr endCoalescing() override;
  void setTimeout(std::chrono::milliseconds timeout);
#if SIM_GLOO_SPLITS
  bool supportsSplitting() const override {
    return true;
  }
  c10::intrusive_ptr<Options> getBackendOptions() override {
    return host_->getBackendOptions();
  }
  c10::intrusive_ptr<c10d::Backend> split(
      const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
      const c10::intrusive_ptr<Options>& options) override {
    // The parts of one group may have one name, and so one store (2.9); Gloo's ranks meet in it, NCCL's in their own.
    const auto own = c10::make_intrusive<c10d::PrefixStore>("ranks " + c10::Join(",", ranks), store);
    return c10::make_intrusive<Collectives>(host_->split(own, ranks, options), own);
  }
  // The group connects when it is created.
  void eagerConnectSingleDevice(at::Device /*device*/) override {}
#endif

 private:
  WorkPtr make_work(WorkPtr host, Tensors outputs, c10d::OpType type, std::function<void()> finish = nullptr);
  WorkPtr make_work(
      std::vector<WorkPtr> hosts, Tensors outputs, c10d::OpType type, std::function<void()> finish = nullptr);
  WorkPtr allgather_uneven(const Tensors& outputs, const at::Tensor& input, const c10d::AllgatherOptions&);

  // Throws NCCL's error at the first collective if another rank uses the same device (duplicate_gpu.cpp).
  void check_device(const at::Tensor& tensor);

  c10::intrusive_ptr<c10d::Backend> host_;
  c10::intrusive_ptr<c10d::Store> store_;
  bool is_checked_ = false;
  // The work made since startCoalescing. Gloo starts each at once; NCCL would start them together.
  std::vector<WorkPtr> coalesced_;
  bool coalescing_ = false;
  // Tensors that this rank has sent to itself and not yet received, by tag.
  std::shared_ptr<std::map<int, std::deque<at::Tensor>>> to_itself_ =
      std::make_shared<std::map<int, std::deque<at::Tensor>>>();
};

}  // namespace sim::collectives

namespace sim {

using collectives::Collectives;

}  // namespace sim
#endif
