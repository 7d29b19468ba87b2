// What Gloo is given in the place of what NCCL would be.
#pragma once

#include "sim.h"

#if SIM_HAS_COLLECTIVES
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <functional>

namespace sim {

// The host alias of a device tensor whose elements are only moved, as a type that every Gloo knows. For a complex tensor it has
// one dimension more.
// Throws what NCCL's process group throws: ValueError for a tensor on another device, TypeError for a type that NCCL has not.
at::Tensor to_move(const at::Tensor& device);
std::vector<at::Tensor> to_move(const std::vector<at::Tensor>& devices);

// The same for one that goes through memory as it lies: ValueError unless it is contiguous.
at::Tensor to_move_whole(const at::Tensor& device);
std::vector<at::Tensor> to_move_whole(const std::vector<at::Tensor>& devices);

// One reduction in Gloo's terms.
struct Reduction {
  std::vector<at::Tensor> operands;  // what Gloo reduces, in place
  c10d::ReduceOp op;                 // by which operation
  std::function<void()> finish;      // makes of the operands what was asked for, in the tensors that were given; may be empty
};

// The host alias of a device tensor to be reduced: ValueError and TypeError as above.
at::Tensor to_reduce(const at::Tensor& device);
std::vector<at::Tensor> to_reduce(const std::vector<at::Tensor>& devices);

// How Gloo reduces `hosts`, which are of one type that NCCL has, by `op` over `ranks` ranks. TypeError and ValueError for an
// operation that NCCL has not for this type.
Reduction plan_reduction(const std::vector<at::Tensor>& hosts, const c10d::ReduceOp& op, int64_t ranks);

}  // namespace sim
#endif
