// Conversion of NCCL's tensors and reductions to Gloo's.
#pragma once

#include "torch_versions.h"

#if SIM_HAS_COLLECTIVES
#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <functional>
#include <vector>

namespace sim::gloo {

// The host alias of a device tensor whose elements are only moved, in a type that every Gloo supports. For a complex
// tensor it has one more dimension. Throws as NCCL's process group does: ValueError for a tensor on another device,
// TypeError for a type that NCCL lacks.
at::Tensor to_move(const at::Tensor& device);
std::vector<at::Tensor> to_move(const std::vector<at::Tensor>& devices);

// The same for a tensor that is sent as one block of memory: ValueError unless it is contiguous.
at::Tensor to_move_whole(const at::Tensor& device);
std::vector<at::Tensor> to_move_whole(const std::vector<at::Tensor>& devices);

// One reduction in Gloo's terms.
struct Reduction {
  std::vector<at::Tensor> operands;  // reduced by Gloo, in place
  c10d::ReduceOp op;                 // Gloo's operation
  std::function<void()> finish;  // converts the operands to the requested result, in the caller's tensors; may be empty
};

// The host alias of a device tensor to be reduced: ValueError and TypeError as above.
at::Tensor to_reduce(const at::Tensor& device);
std::vector<at::Tensor> to_reduce(const std::vector<at::Tensor>& devices);

// How Gloo reduces `hosts`, all of one type that NCCL supports, by `op` over `ranks` ranks. TypeError and ValueError
// for an operation that NCCL lacks for this type.
Reduction plan_reduction(const std::vector<at::Tensor>& hosts, const c10d::ReduceOp& op, int64_t ranks);

}  // namespace sim::gloo

namespace sim {

using gloo::plan_reduction, gloo::Reduction, gloo::to_move, gloo::to_move_whole, gloo::to_reduce;

}  // namespace sim
#endif
