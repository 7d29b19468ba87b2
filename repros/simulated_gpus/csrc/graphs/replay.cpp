// Replaying a capture: its calls again, on the same memory.
//
// Contract held: ATen/cuda/CUDAGraph.cpp. A replay allocates nothing, so nothing that it makes is counted; each draws
// new random numbers, from the generators that the captured calls drew from; autograd does not record it.
#include "graphs/recording.h"

#include "runtime/accounts.h"
#include "runtime/memory.h"
#include "torch_versions.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <utility>

namespace sim::replay {

namespace {

// The memory of each slot during one replay.
using Memories = std::vector<c10::Storage>;

at::Tensor tensor_of(const Recorded& recorded, const Memories& memories) {
  if (recorded.slot == kNoSlot) {
    return recorded.shape;
  }
  const auto& memory = memories[recorded.slot];
  const auto& shape = recorded.shape;
  const auto bytes = shape.numel() == 0
      ? 0
      : at::detail::computeStorageNbytes(
            shape.sizes(), shape.strides(), shape.dtype().itemsize(), static_cast<size_t>(shape.storage_offset()));
  // A result of no elements is given its memory by the kernel.
  TORCH_CHECK(
      memory && bytes <= memory.nbytes(),
      "the simulated GPUs cannot replay this graph: a captured call uses memory that no captured call made");
  return device_tensor(shape, memory);
}

c10::IValue argument_of(const RecordedValue& recorded, const Memories& memories) {
  if (recorded.kind == RecordedValue::Kind::kTensor) {
    return tensor_of(recorded.tensors[0], memories);
  }
  if (recorded.kind == RecordedValue::Kind::kList) {
    c10::List<at::Tensor> list;
    for (const Recorded& each : recorded.tensors) {
      list.push_back(tensor_of(each, memories));
    }
    return list;
  }
  if (recorded.kind == RecordedValue::Kind::kOptionalList) {
    c10::List<SIM_OPTIONAL<at::Tensor>> list;
    for (const Recorded& each : recorded.tensors) {
      const auto tensor = tensor_of(each, memories);
      list.push_back(tensor.defined() ? SIM_OPTIONAL<at::Tensor>(tensor) : SIM_OPTIONAL<at::Tensor>());
    }
    return list;
  }
  return recorded.plain;
}

// Memory that this call made the first time: this time's is taken, or copied to where it was.
void put_result(const Recorded& recorded, const at::Tensor& made, const std::vector<Slot>& slots, Memories& memories) {
  if (!made.defined()) {
    return;
  }
  if (recorded.slot == kNoSlot) {
    if (recorded.shape.defined() && !recorded.shape.is_same(made)) {
      host_alias(recorded.shape).copy_(host_alias(made));
    }
  } else if (!slots[recorded.slot].kept) {
    memories[recorded.slot] = made.storage();
  } else if (made.storage().unsafeGetStorageImpl() != memories[recorded.slot].unsafeGetStorageImpl()) {
    host_tensor(recorded.shape, host_storage(memories[recorded.slot])).copy_(host_alias(made));
  }
}

void run(const RecordedCall& call, const std::vector<Slot>& slots, Memories& memories) {
  torch::jit::Stack stack;
  for (const RecordedValue& argument : call.arguments) {
    stack.push_back(argument_of(argument, memories));
  }
  call.op.callBoxed(&stack);
  for (size_t i = 0; i < call.results.size(); ++i) {
    const auto& recorded = call.results[i].tensors;
    if (call.results[i].kind == RecordedValue::Kind::kTensor) {
      put_result(recorded[0], stack[i].toTensor(), slots, memories);
    } else if (call.results[i].kind == RecordedValue::Kind::kList) {
      const auto made = stack[i].toTensorVector();
      for (size_t k = 0; k < made.size(); ++k) {
        put_result(recorded[k], made[k], slots, memories);
      }
    }
  }
  for (const size_t slot : call.done) {
    memories[slot] = c10::Storage();
  }
}

}  // namespace

}  // namespace sim::replay

namespace sim::recording {

void Recording::replay() const {
  const at::AutoDispatchBelowADInplaceOrView below;
  const c10::impl::ExcludeDispatchKeyGuard without_autocast(c10::autocast_dispatch_keyset);
  const Uncounted uncounted;
  replay::Memories memories;
  memories.reserve(slots_.size());
  for (const Slot& slot : slots_) {
    memories.push_back(slot.kept);
  }
  for (const RecordedCall& call : calls_) {
    replay::run(call, slots_, memories);
  }
}

}  // namespace sim::recording
