// The collectives that reduce. gloo.cpp plans Gloo's operands and the conversion of its result.
#include "distributed/collectives.h"
#include "distributed/gloo.h"
#include "distributed/work.h"
#include "torch_versions.h"

#if SIM_HAS_COLLECTIVES

namespace sim::collectives {

WorkPtr Collectives::allreduce(Tensors& tensors, const c10d::AllreduceOptions& given) {
  check_device(tensors.at(0));
  auto plan = plan_reduction(to_reduce(tensors), given.reduceOp, getSize());
  auto options = given;
  options.reduceOp = plan.op;
  return make_work(host_->allreduce(plan.operands, options), tensors, c10d::OpType::ALLREDUCE, std::move(plan.finish));
}

WorkPtr Collectives::allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& given) {
  check_device(tensors.at(0));
  auto plan = plan_reduction(to_reduce(tensors), given.reduceOp, getSize());
  auto options = given;
  options.reduceOp = plan.op;
  return make_work(
      host_->allreduce_coalesced(plan.operands, options), tensors, c10d::OpType::ALLREDUCE_COALESCED,
      std::move(plan.finish));
}

WorkPtr Collectives::reduce(Tensors& tensors, const c10d::ReduceOptions& given) {
  check_device(tensors.at(0));
  auto hosts = to_reduce(tensors);
  if (given.rootRank != getRank()) {
    // Gloo leaves partial sums in the tensors of the other ranks, which NCCL does not change.
    for (auto& host : hosts) {
      host = host.clone();
    }
  }
  auto plan = plan_reduction(hosts, given.reduceOp, getSize());
  auto options = given;
  options.reduceOp = plan.op;
  return make_work(host_->reduce(plan.operands, options), tensors, c10d::OpType::REDUCE, std::move(plan.finish));
}

// Early versions of Gloo have no reduce_scatter. Later ones reduce a list part by part and a tensor as a whole, with
// results that differ in the last bits; so it is implemented here.
WorkPtr Collectives::reduce_scatter(Tensors& outputs, TensorLists& inputs, const c10d::ReduceScatterOptions& given) {
  check_device(outputs.at(0));
  TORCH_CHECK_VALUE(
      outputs.size() == 1 && inputs.size() == 1 && static_cast<int>(inputs.front().size()) == getSize(),
      "reduce_scatter takes one output tensor and a list of one input for each rank");
  const auto to = to_reduce(outputs.front());
  Tensors shares;
  for (const auto& part : to_reduce(inputs.front())) {
    shares.push_back(part.clone());
  }
  const auto own = shares[getRank()];
  TORCH_CHECK_VALUE(own.numel() == to.numel(), "a rank's output must have the size of its part");
  auto plan = plan_reduction(shares, given.reduceOp, getSize());
  std::vector<WorkPtr> hosts;
  for (int root = 0; root < getSize(); ++root) {
    Tensors one{plan.operands[root]};
    c10d::ReduceOptions options;
    options.reduceOp = plan.op;
    options.rootRank = root;
    options.timeout = given.timeout;
    hosts.push_back(host_->reduce(one, options));
  }
  auto finish = [all = std::move(plan.finish), to, own] {
    if (all) {
      all();
    }
    to.copy_(own.view(to.sizes()));
  };
  return make_work(std::move(hosts), outputs, c10d::OpType::REDUCE_SCATTER, std::move(finish));
}

WorkPtr Collectives::_reduce_scatter_base(
    at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& given) {
  check_device(input);
  TORCH_CHECK_TYPE(output.dtype() == input.dtype(), "input tensor must be the same type as the output tensor.");
  TORCH_CHECK_VALUE(
      input.numel() == output.numel() * getSize(),
      "input tensor must be the same size as output size times world size");
  const auto to = to_reduce(output);
  const auto sums = to_reduce(input).reshape({-1}).clone();
  auto plan = plan_reduction({sums}, given.reduceOp, getSize());
  c10d::AllreduceOptions options;
  options.reduceOp = plan.op;
  options.timeout = given.timeout;
  const auto own = sums.narrow(0, getRank() * output.numel(), output.numel()).view(output.sizes());
  auto finish = [whole = std::move(plan.finish), to, own] {
    if (whole) {
      whole();
    }
    to.copy_(own);
  };
  return make_work(
      host_->allreduce(plan.operands, options), {output}, c10d::OpType::_REDUCE_SCATTER_BASE, std::move(finish));
}

}  // namespace sim::collectives

#endif
