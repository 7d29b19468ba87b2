// Scaled dot-product attention, whose algorithm PyTorch chooses by device type: this device makes the CPU's choice.
//
// Contract held: ATen/native/transformers/attention.cpp asks the device for its choice (from 2.5 any device, before only those it
// lists) and, where that is a fused one, calls the CPU's fused operator for every device but CUDA.
#include "sim.h"

#if SIM_HAS_ATTENTION_CHOICE
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/_fused_sdp_choice.h>

namespace sim {

namespace {

at::Tensor to_host(const at::Tensor& tensor) {
  return host_alias(tensor).set_requires_grad(tensor.requires_grad());
}

// The last arguments depend on the version: the scale, and from 2.5 whether heads are grouped.
template <class... Rest>
int64_t choose(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const SIM_OPTIONAL<at::Tensor>& mask, double dropout,
    bool is_causal, Rest... rest) {
  const auto host_mask = mask.has_value() && mask->defined() ? SIM_OPTIONAL<at::Tensor>(to_host(*mask)) : mask;
  return at::_fused_sdp_choice(to_host(query), to_host(key), to_host(value), host_mask, dropout, is_causal, rest...);
}

}  // namespace

}  // namespace sim

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &sim::choose)
}
#endif
