// Differences between PyTorch versions (2.0 to 2.15) that need a macro.
//
// Most differences need none: a method that only some versions declare virtual, or const, is defined without `override`
// and in both forms, and overrides the one that the version has (Allocator::allocate was const before 2.3, copy_data is
// from 2.3; the hooks interface grew from two methods in 2.1 to a dozen).
#pragma once

#include <torch/csrc/api/include/torch/version.h>

#define SIM_TORCH_AT_LEAST(major, minor) \
  (TORCH_VERSION_MAJOR > (major) || (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))

// c10::optional became std::optional in 2.3.
#if SIM_TORCH_AT_LEAST(2, 3)
#include <optional>
#define SIM_OPTIONAL std::optional
#else
#include <c10/util/Optional.h>
#define SIM_OPTIONAL c10::optional
#endif

// From 2.1 a c10d backend can be registered for any device type. In 2.0 a group has one backend for "cpu" and "cuda"
// only, so 2.0 gets no collectives.
#define SIM_HAS_COLLECTIVES SIM_TORCH_AT_LEAST(2, 1)

// Whether Gloo adds bfloat16 itself: not in 2.1.2, but in 2.4.1.
#define SIM_GLOO_ADDS_BFLOAT16 SIM_TORCH_AT_LEAST(2, 4)

// Whether Gloo's groups can be split, as NCCL's can since 2.2; not in 2.6.0, but in 2.9.1.
#define SIM_GLOO_SPLITS SIM_TORCH_AT_LEAST(2, 9)

// CUDA's interface counts devices in int64_t in 2.0.
#if SIM_TORCH_AT_LEAST(2, 1)
#define SIM_HOOKS_INDEX c10::DeviceIndex
#else
#define SIM_HOOKS_INDEX int64_t
#endif

// From 2.8 an error of the device's runtime is a class of its own.
#define SIM_HAS_ACCELERATOR_ERROR SIM_TORCH_AT_LEAST(2, 8)

// From 2.9 `torch.accelerator` asks the allocator for memory statistics.
#define SIM_HAS_DEVICE_ALLOCATOR SIM_TORCH_AT_LEAST(2, 9)
