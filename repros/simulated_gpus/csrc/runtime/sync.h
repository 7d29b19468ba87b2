// `torch.cuda.set_sync_debug_mode`.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

namespace sim::sync {

// Sets the mode (0 is silent, 1 warns, 2 raises) and returns the one before.
int exchange_sync_mode(int mode);
// Warn or raise, by the mode: the host waits for a GPU now; would wait in this call; would wait for this copy.
void note_sync();
void note_sync_of(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments);
void note_sync_of_copy(const at::Tensor& to, const at::Tensor& from, bool non_blocking);

}  // namespace sim::sync

namespace sim {

using sync::exchange_sync_mode, sync::note_sync, sync::note_sync_of, sync::note_sync_of_copy;

}  // namespace sim
