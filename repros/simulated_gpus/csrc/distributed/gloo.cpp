// The types and reductions that NCCL has and Gloo lacks, expressed in types and reductions that Gloo has.
//
// Contract held: ProcessGroupNCCL.cpp, getNcclDataType and getNcclReduceOp: its refusals and their messages; a sum of
// bools is their union; AVG of integers is truncated; PREMUL_SUM multiplies each rank's share before the sum. Complex
// tensors are pairs of reals. Gloo refuses most of this, some of it late, in a thread of its own; after that a barrier
// on the group fails too. So Gloo never gets what it would refuse.
#include "distributed/gloo.h"

#include "runtime/memory.h"
#include "torch_versions.h"

#if SIM_HAS_COLLECTIVES
#include <ATen/ops/view_as_real.h>
#include <c10/util/Exception.h>

namespace sim::gloo {

namespace {

using Tensors = std::vector<at::Tensor>;
using c10d::ReduceOp;

template <class Change>
Tensors map_tensors(const Tensors& tensors, const Change& change) {
  Tensors changed;
  changed.reserve(tensors.size());
  for (const auto& tensor : tensors) {
    changed.push_back(change(tensor));
  }
  return changed;
}

bool nccl_supports(c10::ScalarType type) {
  switch (type) {
    case at::kFloat:
    case at::kDouble:
    case at::kHalf:
    case at::kBFloat16:
    case at::kChar:
    case at::kByte:
    case at::kInt:
    case at::kLong:
    case at::kBool:
    case at::kFloat8_e5m2:
    case at::kFloat8_e4m3fn:
      return true;
    default:
      return c10::isComplexType(type) && type != at::kComplexHalf;
  }
}

void check_contiguous(const at::Tensor& tensor) {
  TORCH_CHECK_VALUE(tensor.is_contiguous(tensor.suggest_memory_format()), "Tensors must be contiguous");
}

// A device tensor's host alias, if NCCL would accept the tensor.
at::Tensor checked_alias(const at::Tensor& device) {
  TORCH_CHECK_VALUE(is_sim(device) && device.layout() == c10::kStrided, "Tensors must be CUDA and dense");
  TORCH_CHECK_TYPE(
      nccl_supports(device.scalar_type()),
      "Input tensor data type is not supported for NCCL process group: ", device.scalar_type());
  return host_alias(device);
}

at::Tensor as_type_gloo_moves(const at::Tensor& host) {
  switch (host.scalar_type()) {
    case at::kBool:
    case at::kFloat8_e5m2:
    case at::kFloat8_e4m3fn:
      return host.view(at::kByte);
    case at::kBFloat16:
      return host.view(at::kHalf);
    default:
      return host.is_complex() ? at::view_as_real(host) : host;
  }
}

void divide(const Tensors& sums, int64_t by) {
  for (at::Tensor sum : sums) {
    if (at::isIntegralType(sum.scalar_type(), /*includeBool=*/false)) {
      sum.div_(by, "trunc");
    } else {
      sum.div_(by);
    }
  }
}

at::Scalar premultiplier(const ReduceOp& op) {
  const auto* supplement = dynamic_cast<const c10d::NCCLPreMulSumSupplement*>(op.supplement_.get());
  TORCH_CHECK_VALUE(
      supplement != nullptr, "PREMUL_SUM needs the factor that torch.distributed._make_nccl_premul_sum gives it");
  const auto& factor = supplement->tensor_factor;
  return factor.defined() ? host_alias(factor).item() : at::Scalar(supplement->double_factor);
}

// The tensor that Gloo reduces instead of `host`: the same memory as another type, if the operation allows it.
at::Tensor reduction_operand(const at::Tensor& host, ReduceOp::RedOpType op) {
  const auto type = host.scalar_type();
  TORCH_CHECK_TYPE(
      type != at::kFloat8_e5m2 && type != at::kFloat8_e4m3fn,
      "Input tensor data type is not supported for NCCL process group: ", type);
  if (type == at::kBool) {
    TORCH_CHECK_TYPE(op != ReduceOp::AVG, "Cannot use ReduceOp.AVG with boolean inputs");
    return host.view(at::kByte);
  }
  if (host.is_complex()) {
    TORCH_CHECK_VALUE(
        op == ReduceOp::SUM || op == ReduceOp::AVG || op == ReduceOp::PREMUL_SUM,
        "complex tensors are reduced by SUM, AVG and PREMUL_SUM only");
    return at::view_as_real(host);
  }
  return host;
}

}  // namespace

at::Tensor to_move(const at::Tensor& device) {
  return as_type_gloo_moves(checked_alias(device));
}

Tensors to_move(const Tensors& devices) {
  return map_tensors(devices, [](const at::Tensor& device) { return to_move(device); });
}

at::Tensor to_move_whole(const at::Tensor& device) {
  auto host = to_move(device);
  check_contiguous(device);
  return host;
}

Tensors to_move_whole(const Tensors& devices) {
  return map_tensors(devices, [](const at::Tensor& device) { return to_move_whole(device); });
}

at::Tensor to_reduce(const at::Tensor& device) {
  auto host = checked_alias(device);
  check_contiguous(device);
  return host;
}

Tensors to_reduce(const Tensors& devices) {
  return map_tensors(devices, [](const at::Tensor& device) { return to_reduce(device); });
}

Reduction plan_reduction(const Tensors& hosts, const ReduceOp& op, int64_t ranks) {
  const auto type = hosts.empty() ? at::kFloat : hosts.front().scalar_type();
  for (const auto& host : hosts) {
    TORCH_CHECK_TYPE(host.scalar_type() == type, "Tensors must have identical type");
  }
  const auto targets = map_tensors(hosts, [&](const at::Tensor& host) { return reduction_operand(host, op); });
  Reduction plan{targets, op, nullptr};
  if (op == ReduceOp::PREMUL_SUM) {
    const auto factor = premultiplier(op);
    for (at::Tensor target : targets) {
      TORCH_CHECK_TYPE(target.is_floating_point(), "PreMulSum Data type must be half, float, bfloat16 or double");
      target.mul_(factor);
    }
  }
  if (op == ReduceOp::PREMUL_SUM || op == ReduceOp::AVG) {
    plan.op = ReduceOp::SUM;
  } else if (op == ReduceOp::SUM && type == at::kBool) {
    plan.op = ReduceOp::MAX;
  }
  const bool widened = type == at::kBFloat16 && !SIM_GLOO_ADDS_BFLOAT16;
  if (widened) {
    plan.operands = map_tensors(targets, [](const at::Tensor& target) { return target.to(at::kFloat); });
  }
  if (widened || op == ReduceOp::AVG) {
    plan.finish = [targets, operands = plan.operands, widened, divisor = op == ReduceOp::AVG ? ranks : 1] {
      for (size_t i = 0; widened && i < targets.size(); ++i) {
        targets[i].copy_(operands[i]);
      }
      if (divisor != 1) {
        divide(targets, divisor);
      }
    };
  }
  return plan;
}

}  // namespace sim::gloo

#endif
