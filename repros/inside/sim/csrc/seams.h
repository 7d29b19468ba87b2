// Every place where the PyTorch versions (2.0 to 2.15) part ways and a macro is needed to follow.
//
// Most seams need none: a method that some versions declare virtual, or const, is written here without `override` and in
// both spellings, and overrides whichever the version has (Allocator::allocate was const before 2.3, copy_data is from 2.3;
// the hooks interface grew from two methods in 2.1 to a dozen).
#pragma once

#include <torch/csrc/api/include/torch/version.h>

#define SIM_TORCH_AT_LEAST(major, minor) \
  (TORCH_VERSION_MAJOR > (major) || (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))

// c10::optional became std::optional in 2.3 and the old name is going away.
#if SIM_TORCH_AT_LEAST(2, 3)
#include <optional>
#define SIM_OPTIONAL std::optional
#else
#include <c10/util/Optional.h>
#define SIM_OPTIONAL c10::optional
#endif

// From 2.1: an interface through which PyTorch asks a backend for its generators, storages and devices.
#define SIM_HAS_HOOKS SIM_TORCH_AT_LEAST(2, 1)

// From 2.1 a c10d backend can be registered for a device type of its own. Before, a group held one backend for "cpu" and
// "cuda" only, so 2.0 gets no collectives.
#define SIM_HAS_COLLECTIVES SIM_TORCH_AT_LEAST(2, 1)

// Gloo adds bfloat16 itself: not yet in 2.1.2, in 2.4.1 it does.
#define SIM_GLOO_ADDS_BFLOAT16 SIM_TORCH_AT_LEAST(2, 4)

// From 2.1 autocast knows a backend of its own; from 2.4 its settings are PyTorch's for every device, before they are asked
// of the device module.
#define SIM_HAS_AUTOCAST SIM_TORCH_AT_LEAST(2, 1)
#define SIM_HOLDS_AUTOCAST_SETTINGS (SIM_HAS_AUTOCAST && !SIM_TORCH_AT_LEAST(2, 4))

// From 2.4 attention asks every device which of its algorithms to take.
#define SIM_HAS_ATTENTION_CHOICE SIM_TORCH_AT_LEAST(2, 4)

// From 2.9 `torch.accelerator` asks the allocator for memory statistics.
#define SIM_HAS_DEVICE_ALLOCATOR SIM_TORCH_AT_LEAST(2, 9)
