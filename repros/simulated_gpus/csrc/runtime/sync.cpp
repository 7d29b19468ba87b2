// `torch.cuda.set_sync_debug_mode`: a warning or an error where the host waits for a GPU.
//
// Contract held: c10/cuda/CUDAFunctions.cpp (2.4.0) and those of its callers in ATen/native/cuda that can be seen from
// outside: copies between host and GPU, numbers read from a GPU, results whose size depends on values. PyTorch
// documents that the mode does not detect all of them.
#include "runtime/sync.h"

#include "dispatch/kernel_checks.h"
#include "graphs/capture.h"
#include "runtime/memory.h"
#include "torch_versions.h"

#include <atomic>
#include <iterator>
#include <string>
#include <unordered_map>
#include <utility>

namespace sim::sync {

namespace {

using SyncCondition = bool (*)(const c10::FunctionSchema&, c10::ArrayRef<c10::IValue>);

constexpr int kWarns = 1;
std::atomic<int> sync_mode{0};

bool waits(const c10::FunctionSchema& /*schema*/, c10::ArrayRef<c10::IValue> /*arguments*/) {
  return true;
}

bool has_no_size(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments) {
  const auto at = schema.argumentIndexWithName("output_size");
  return !at.has_value() || arguments[static_cast<size_t>(*at)].isNone();
}

bool has_no_dimension(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> /*arguments*/) {
  return !schema.argumentIndexWithName("dim").has_value();
}

// A mask is turned into indices, whose number depends on its values; indices of the host are copied.
bool has_mask_or_host_index(c10::ArrayRef<c10::IValue> arguments) {
  for (const SIM_OPTIONAL<at::Tensor>& index : arguments[1].toOptionalTensorList()) {
    if (index.has_value() && index->defined() && (is_mask(*index) || !is_sim(*index))) {
      return true;
    }
  }
  return false;
}

bool indexing_waits(const c10::FunctionSchema& /*schema*/, c10::ArrayRef<c10::IValue> arguments) {
  return has_mask_or_host_index(arguments);
}

// One number of the host is written through a mask without indices.
bool assignment_waits(const c10::FunctionSchema& /*schema*/, c10::ArrayRef<c10::IValue> arguments) {
  return !is_masked_fill(arguments[0].toTensor(), arguments[1], arguments[2].toTensor()) &&
      has_mask_or_host_index(arguments);
}

// Constants: for a map's initializer list the compiler makes code that constructs and destroys each name.
constexpr std::pair<const char*, SyncCondition> kSyncs[] = {
    {"aten::_index_put_impl_", &assignment_waits},
    {"aten::_local_scalar_dense", &waits},
    {"aten::_unique", &waits},
    {"aten::_unique2", &waits},
    {"aten::bincount", &waits},
    {"aten::embedding_renorm_", &waits},
    {"aten::equal", &waits},
    {"aten::index", &indexing_waits},
    {"aten::masked_select", &waits},
    {"aten::mode", &waits},
    {"aten::nanmedian", &has_no_dimension},
    {"aten::nonzero", &waits},
    {"aten::repeat_interleave", &has_no_size},
    {"aten::unique_consecutive", &waits},
    {"aten::unique_dim", &waits},
    {"aten::unique_dim_consecutive", &waits},
};

const std::unordered_map<std::string, SyncCondition>& syncs() {
  static const std::unordered_map<std::string, SyncCondition> all(std::begin(kSyncs), std::end(kSyncs));
  return all;
}

}  // namespace

int exchange_sync_mode(int mode) {
  return sync_mode.exchange(mode);
}

void note_sync() {
  refuse_in_capture();
  const int mode = sync_mode.load();
  TORCH_CHECK(mode <= kWarns, "called a synchronizing CUDA operation");
  if (mode == kWarns) {
    TORCH_WARN("called a synchronizing CUDA operation");
  }
}

void note_sync_of(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments) {
  if (sync_mode.load() == 0 && !is_capturing()) {
    return;
  }
  const auto found = syncs().find(schema.name());
  if (found != syncs().end() && found->second(schema, arguments)) {
    note_sync();
  }
}

void note_sync_of_copy(const at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  if (!non_blocking && is_sim(to) != is_sim(from)) {
    note_sync();
  }
}

}  // namespace sim::sync
