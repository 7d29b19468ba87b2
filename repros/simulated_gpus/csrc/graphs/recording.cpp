// Recording the calls of a capture.
//
// Contract held: CUDA runs none of the captured kernels before a replay. Here each call runs once, since the next one
// needs its shape, and `finish` undoes what it did. A call is what reaches a device's kernels: one that only makes a
// view of an argument is none, and one whose result is memory without content (`empty`) writes nothing in a replay.
#include "graphs/recording.h"

#include "dispatch/placement.h"
#include "runtime/memory.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

namespace sim::recording {

namespace {

// A tensor of the host of this shape, without memory.
at::Tensor shape_of(const at::Tensor& tensor) {
  const c10::Storage nothing(
      c10::Storage::use_byte_size_t(), 0, c10::DataPtr(nullptr, c10::Device(c10::DeviceType::CPU)), nullptr, false);
  return host_tensor(tensor, nothing);
}

bool begins_with(const std::string& text, const char* beginning) {
  return text.rfind(beginning, 0) == 0;
}

// The kernels of normalisation also update their averages, which no schema marks as written.
bool may_write(const c10::Argument& argument) {
  return is_written(argument) || begins_with(argument.name(), "running_");
}

bool is_on_gpu(const RecordedValue& value) {
  return std::any_of(
      value.tensors.begin(), value.tensors.end(), [](const Recorded& each) { return each.slot != kNoSlot; });
}

// Memory that is kept at its address is not to be written when it was only allocated.
bool only_allocates(const c10::OperatorHandle& op) {
  const auto& name = op.schema().name();
  return begins_with(name, "aten::empty") || begins_with(name, "aten::new_empty");
}

void make_undefined(const Slot& slot) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const auto host = host_tensor(slot.made_as, host_storage(slot.kept));
  if (c10::isFloatingType(host.scalar_type()) || c10::isComplexType(host.scalar_type())) {
    host.fill_(std::numeric_limits<double>::quiet_NaN());
  } else {
    host.zero_();
  }
}

}  // namespace

size_t Recording::slot_of(const c10::Storage& storage, bool is_result) {
  const auto* impl = storage.unsafeGetStorageImpl();
  const auto found = known_.find(impl);  // an address means one storage while the slot refers to it
  if (found != known_.end()) {
    return found->second;
  }
  Slot slot{storage.getWeakStorageImpl(), is_result ? c10::Storage() : storage, is_result};
  slots_.push_back(std::move(slot));
  known_.emplace(impl, slots_.size() - 1);
  return slots_.size() - 1;
}

Recorded Recording::record(const at::Tensor& tensor, bool is_result) {
  if (!is_sim(tensor)) {
    return {kNoSlot, tensor};
  }
  check_strided(tensor);
  const auto slot = slot_of(tensor.storage(), is_result);
  auto shape = shape_of(tensor);
  if (slots_[slot].made_here && !slots_[slot].made_as.defined()) {
    slots_[slot].made_as = shape;
  }
  return {slot, std::move(shape)};
}

RecordedValue Recording::record(const c10::IValue& value, bool is_result) {
  if (value.isTensor()) {
    auto tensor = value.toTensor();
    // A number of the host is passed to a kernel by its value.
    if (!is_result && tensor.defined() && tensor.device().is_cpu() && tensor.dim() == 0) {
      const at::AutoDispatchBelowADInplaceOrView below;
      const bool is_wrapped = tensor.unsafeGetTensorImpl()->is_wrapped_number();
      tensor = tensor.clone();
      tensor.unsafeGetTensorImpl()->set_wrapped_number(is_wrapped);
    }
    return {RecordedValue::Kind::kTensor, {}, {record(tensor, is_result)}};
  }
  if (value.isTensorList()) {
    RecordedValue recorded{RecordedValue::Kind::kList, {}, {}};
    for (const at::Tensor& tensor : value.toTensorList()) {
      recorded.tensors.push_back(record(tensor, is_result));
    }
    return recorded;
  }
  if (value.isList()) {
    const auto list = value.toListRef();
    if (std::any_of(list.begin(), list.end(), [](const c10::IValue& each) { return each.isTensor(); })) {
      RecordedValue recorded{RecordedValue::Kind::kOptionalList, {}, {}};
      for (const c10::IValue& each : list) {
        recorded.tensors.push_back(record(each.isTensor() ? each.toTensor() : at::Tensor(), is_result));
      }
      return recorded;
    }
  }
  return {RecordedValue::Kind::kPlain, value, {}};
}

void Recording::save(const RecordedValue& value) {
  for (const Recorded& each : value.tensors) {
    if (each.slot == kNoSlot || slots_[each.slot].made_here || slots_[each.slot].is_saved) {
      continue;
    }
    Slot& slot = slots_[each.slot];
    const auto* bytes = static_cast<const char*>(slot.kept.data_ptr().get());
    slot.before.assign(bytes, bytes + slot.kept.nbytes());
    slot.is_saved = true;
  }
}

std::vector<RecordedValue> Recording::take(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<RecordedValue> taken;
  for (size_t i = 0; i < arguments.size(); ++i) {
    taken.push_back(record(arguments[i], /*is_result=*/false));
    if (may_write(schema.arguments()[i])) {
      save(taken.back());
    }
  }
  return taken;
}

void Recording::add(
    const c10::OperatorHandle& op, std::vector<RecordedValue> arguments, c10::ArrayRef<c10::IValue> given,
    c10::ArrayRef<c10::IValue> results) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const size_t slots_before = slots_.size();
  std::vector<RecordedValue> recorded;
  for (const auto& result : results) {
    recorded.push_back(record(result, /*is_result=*/true));
  }
  if (op.hasTag(at::Tag::inplace_view)) {
    // Its effect, a tensor's shape, is in what later calls record. It may have changed the memory's size, which a
    // replay does not.
    for (const auto& value : given) {
      if (value.isTensor() && is_sim(value.toTensor())) {
        slots_[slot_of(value.toTensor().storage(), /*is_result=*/false)].kept = value.toTensor().storage();
      }
    }
    return;
  }
  const bool is_used = std::any_of(arguments.begin(), arguments.end(), is_on_gpu) ||
      std::any_of(recorded.begin(), recorded.end(), is_on_gpu);
  const auto& parameters = op.schema().arguments();
  const bool writes = std::any_of(parameters.begin(), parameters.end(), may_write);
  const bool makes = slots_.size() > slots_before || recorded.empty() ||
      std::any_of(recorded.begin(), recorded.end(), [](const RecordedValue& each) {
                       return std::any_of(each.tensors.begin(), each.tensors.end(), [](const Recorded& result) {
                         return result.slot == kNoSlot && result.shape.defined();
                       });
                     });
  if (is_used && (writes || makes) && op.schema().name() != "aten::record_stream") {
    calls_.push_back({op, std::move(arguments), std::move(recorded), {}});
  }
}

void Recording::finish() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (Slot& slot : slots_) {
    if (!slot.kept) {
      if (auto held = slot.seen.lock()) {
        slot.kept = c10::Storage(std::move(held));
      }
    }
    if (slot.kept && slot.made_here && slot.made_as.defined()) {
      make_undefined(slot);
    } else if (slot.is_saved) {
      auto* bytes = static_cast<char*>(const_cast<void*>(slot.kept.data_ptr().get()));
      std::memcpy(bytes, slot.before.data(), std::min(slot.before.size(), slot.kept.nbytes()));
      slot.before = {};
    }
  }
  known_.clear();
  calls_.erase(
      std::remove_if(
          calls_.begin(), calls_.end(),
          [&](const RecordedCall& call) {
            return only_allocates(call.op) && !call.results.empty() && !call.results[0].tensors.empty() &&
                slots_[call.results[0].tensors[0].slot].kept;
          }),
      calls_.end());
  std::vector<bool> is_done(slots_.size(), false);
  for (auto call = calls_.rbegin(); call != calls_.rend(); ++call) {
    for (const auto* values : {&call->arguments, &call->results}) {
      for (const RecordedValue& value : *values) {
        for (const Recorded& each : value.tensors) {
          if (each.slot != kNoSlot && !is_done[each.slot]) {
            is_done[each.slot] = true;
            call->done.push_back(each.slot);
          }
        }
      }
    }
  }
}

}  // namespace sim::recording
