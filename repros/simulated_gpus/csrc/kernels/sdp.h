// Scaled dot product attention: the choice of the backend (sdp_choice.cpp) and its kernels (sdp_kernels.cpp).
#pragma once

#include "torch_versions.h"

#include <utility>

#if SIM_TORCH_AT_LEAST(2, 4)
#include <ATen/native/transformers/sdp_utils_cpp.h>
#endif

namespace sim::sdp_kernels {

// Whether the host has a fused kernel with a name of its own; from 2.3.
bool has_fused_host_attention();

}  // namespace sim::sdp_kernels

namespace sim::sdp_choice {

// Sets the compute capability of the devices; 8.0 unless a profile is chosen.
void set_capability(int major, int minor);

#if SIM_TORCH_AT_LEAST(2, 4)
// Whether a GPU takes flash or "memory efficient" attention for these arguments, and the host can compute it; with
// `debug`, the reasons against it are warnings, as PyTorch's are.
bool can_use_flash_attention(const sdp::sdp_params& params, bool debug);
bool can_use_efficient_attention(const sdp::sdp_params& params, bool debug);
#endif

}  // namespace sim::sdp_choice

namespace sim {

using sdp_choice::set_capability, sdp_kernels::has_fused_host_attention;
#if SIM_TORCH_AT_LEAST(2, 4)
using sdp_choice::can_use_efficient_attention, sdp_choice::can_use_flash_attention;
#endif

}  // namespace sim
