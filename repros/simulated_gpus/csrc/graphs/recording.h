// The calls of a capture: each with its arguments and results, of which the memory is a numbered slot.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Storage.h>
#include <c10/util/intrusive_ptr.h>

#include <mutex>
#include <unordered_map>
#include <vector>

namespace sim::recording {

// A tensor's shape, and where its memory is. A tensor of the host is held as it is.
struct Recorded {
  size_t slot;
  at::Tensor shape;  // of the host, without memory
};

// An argument or a result: `plain`, or the tensors that are to be put in its place.
struct RecordedValue {
  enum class Kind { kPlain, kTensor, kList, kOptionalList } kind = Kind::kPlain;
  c10::IValue plain;
  std::vector<Recorded> tensors;
};

struct RecordedCall {
  c10::OperatorHandle op;
  std::vector<RecordedValue> arguments;
  std::vector<RecordedValue> results;
  std::vector<size_t> done;  // slots that no later call uses
};

constexpr size_t kNoSlot = static_cast<size_t>(-1);

// The memory behind the tensors of a capture. What a captured call made and the program has dropped by the end of the
// capture is made anew by each replay; all other memory is kept, at its address.
struct Slot {
  c10::weak_intrusive_ptr<c10::StorageImpl> seen;
  c10::Storage kept;
  bool made_here = false;
  at::Tensor made_as{};        // the shape of the result that it was made for
  std::vector<char> before{};  // the bytes of memory from outside, before a captured call wrote to it
  bool is_saved = false;
};

class Recording {
 public:
  Recording() = default;

  // Takes the arguments of a call that is about to run.
  std::vector<RecordedValue> take(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments);
  // Adds the call, if it does anything on a GPU other than making views.
  void add(
      const c10::OperatorHandle& op, std::vector<RecordedValue> arguments, c10::ArrayRef<c10::IValue> given,
      c10::ArrayRef<c10::IValue> results);
  // Undoes what the captured calls did, which CUDA does not run: memory from outside gets its bytes back, what they
  // made and the program holds is left undefined (numbers: NaN).
  void finish();
  void replay() const;
  bool is_empty() const {
    return calls_.empty();
  }

 private:
  RecordedValue record(const c10::IValue& value, bool is_result);
  Recorded record(const at::Tensor& tensor, bool is_result);
  size_t slot_of(const c10::Storage& storage, bool is_result);
  void save(const RecordedValue& value);

  std::mutex mutex_;
  std::vector<RecordedCall> calls_;
  std::vector<Slot> slots_;
  std::unordered_map<const c10::StorageImpl*, size_t> known_;
};

}  // namespace sim::recording

namespace sim {

using recording::kNoSlot, recording::Recorded, recording::RecordedCall, recording::RecordedValue, recording::Recording,
    recording::Slot;

}  // namespace sim
