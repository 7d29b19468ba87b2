// Which algorithm attention takes on a GPU: flash, "memory efficient" or "math". cuDNN's is never taken.
//
// Contract held: ATen/native/transformers/cuda/sdp_utils.cpp, for a GPU of the profile's capability and tensors that
// are not nested. What the CPU asks as well is PyTorch's own code, in a header that its wheels have from 2.4; before,
// the CPU's choice is taken. A fused algorithm is taken only where the host can compute it.
#include "kernels/kernels.h"
#include "kernels/sdp.h"
#include "runtime/device.h"
#include "torch_versions.h"

#if SIM_TORCH_AT_LEAST(2, 4)
#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/transformers/attention.h>
#else
#include <ATen/native/DispatchStub.h>

// The header is not part of these versions' wheels.
namespace at::native {
#if SIM_TORCH_AT_LEAST(2, 1)
using fused_sdp_choice_fn = int64_t (*)(
    const Tensor&, const Tensor&, const Tensor&, const c10::optional<Tensor>&, double, bool, c10::optional<double>);
#else
using fused_sdp_choice_fn =
    int64_t (*)(const Tensor&, const Tensor&, const Tensor&, const c10::optional<Tensor>&, double, bool);
#endif
DECLARE_DISPATCH(fused_sdp_choice_fn, _fused_sdp_choice_stub);
}  // namespace at::native
#endif

#include <array>
#include <utility>

namespace sim::sdp_choice {

namespace {

std::pair<int, int> capability{8, 0};

}  // namespace

void set_capability(int major, int minor) {
  capability = {major, minor};
}

#if SIM_TORCH_AT_LEAST(2, 4)

namespace {

using sdp::sdp_params;

template <class... Words>
bool say_no(bool debug, const Words&... words) {
  if (debug) {
    TORCH_WARN(words...);
  }
  return false;
}

bool has_two_bytes(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16;
}

bool host_computes(const sdp_params& params, bool debug) {
  if (params.dropout > 0) {
    return say_no(debug, "Simulated GPUs have no fused attention with dropout.");
  }
  if (params.query.sym_size(-1) != params.value.sym_size(-1)) {
    return say_no(debug, "Simulated GPUs have no fused attention for values of another last dimension.");
  }
  return !params.attn_mask.has_value() || !params.attn_mask->requires_grad() ||
      say_no(debug, "Simulated GPUs have no fused attention that trains its mask.");
}

bool are_plain_and_on_gpu(const sdp_params& params, bool debug) {
  if (params.query.device().type() != kDevice) {
    return say_no(
        debug, "All tensors need to be on cuda device. Got query on device: ", params.query.device(),
        ", key on device: ", params.key.device(), ", value on device: ", params.value.device());
  }
  return sdp::has_only_dense_inputs(params) ||
      say_no(debug, "Simulated GPUs have no fused attention for nested tensors.");
}

bool heads_fit_flash(const sdp_params& params, bool debug) {
  constexpr int64_t kMost = 256;
  const auto query = params.query.sym_size(-1), key = params.key.sym_size(-1), value = params.value.sym_size(-1);
  return (query == key && query == value && query <= kMost) ||
      say_no(debug,
             "Flash attention requires q,k,v to have the same last dimension and to be less than or equal to 256. Got "
             "Query.size(-1): ",
             query, ", Key.size(-1): ", key, ", Value.size(-1): ", value, " instead.");
}

// A matrix product on tensor cores reads 16 bytes at once.
bool heads_fit_efficient(const sdp_params& params, bool debug) {
  const bool half = has_two_bytes(params.query);
  const bool tensor_cores = capability.first >= 8 || (capability.first == 7 && half);
  const int64_t alignment = !tensor_cores ? 1 : half ? 8 : 4;
  const auto query = params.query.sym_size(-1), key = params.key.sym_size(-1), value = params.value.sym_size(-1);
  return (query == key && query % alignment == 0 && query > 0 && value % alignment == 0 && value > 0) ||
      say_no(debug, "Mem efficient attention requires last dimension of inputs to be divisible by ", alignment,
             ". Got Query.size(-1): ", query, ", Key.size(-1): ", key, ", Value.size(-1): ", value, " instead.");
}

bool gpu_has_flash(bool debug) {
  return capability.first >= 8 ||
      say_no(debug, "Flash attention only supports gpu architectures from sm80 on. Attempting to run on a sm ",
             capability.first, ".", capability.second, " gpu.");
}

bool is_square_if_causal(const sdp_params& params, bool debug) {
  const auto queries = params.query.sym_size(-2), keys = params.key.sym_size(-2);
  return !params.is_causal || queries == keys ||
      say_no(
          debug,
          "Flash attention does not support the is_causal flag when seqlen_q != seqlen_k. Got seqlen_q: ", queries,
          " seqlen_k: ", keys,
          ". If you would like to use causal attention with non-square masks, please see CausalAttnMask.");
}

template <bool supports_groups>
bool heads_agree(const sdp_params& params, bool debug) {
#if SIM_TORCH_AT_LEAST(2, 5)
  return sdp::check_batch_size_and_num_heads_dense<supports_groups>(params, debug);
#else
  return sdp::check_batch_size_and_num_heads_dense(params, debug);
#endif
}

}  // namespace

bool can_use_flash_attention(const sdp_params& params, bool debug) {
  constexpr std::array<at::ScalarType, 2> types{at::kHalf, at::kBFloat16};
  return sdp::check_runtime_disabled_flash(params, debug) && are_plain_and_on_gpu(params, debug) &&
      sdp::check_tensor_shapes(params, debug) && sdp::check_for_attn_mask(params, debug) &&
      heads_fit_flash(params, debug) && gpu_has_flash(debug) && is_square_if_causal(params, debug) &&
      sdp::check_tensor_dtype(params, types, debug) && heads_agree<true>(params, debug) &&
      sdp::check_nonzero_sequence_lengths_dense(params, debug) &&
      sdp::check_last_dim_stride_equals_1_dense<true>(params, debug) && host_computes(params, debug);
}

bool can_use_efficient_attention(const sdp_params& params, bool debug) {
  constexpr std::array<at::ScalarType, 2> types{at::kHalf, at::kFloat};
  constexpr std::array<at::ScalarType, 3> types_from_8{at::kHalf, at::kFloat, at::kBFloat16};
  return sdp::check_runtime_disabled_mem_efficient(params, debug) && are_plain_and_on_gpu(params, debug) &&
      sdp::check_tensor_shapes(params, debug) && heads_fit_efficient(params, debug) &&
      sdp::check_nonzero_sequence_lengths_dense(params, debug) &&
      sdp::check_last_dim_stride_equals_1_dense<false>(params, debug) &&
      heads_agree<SIM_TORCH_AT_LEAST(2, 15)>(params, debug) &&
      (capability.first >= 8 ? sdp::check_tensor_dtype(params, types_from_8, debug)
                             : sdp::check_tensor_dtype(params, types, debug)) &&
      host_computes(params, debug);
}

namespace {

using sdp::SDPBackend;

auto order() {
#if SIM_TORCH_AT_LEAST(2, 6)
  return at::globalContext().sDPPriorityOrder();
#else
  return std::array<SDPBackend, 3>{SDPBackend::flash_attention, SDPBackend::efficient_attention, SDPBackend::math};
#endif
}

int64_t choose(const sdp_params& params) {
  const auto& context = at::globalContext();
  TORCH_CHECK(
      context.userEnabledMathSDP() || context.userEnabledFlashSDP() || context.userEnabledMemEfficientSDP() ||
          context.userEnabledCuDNNSDP(),
      "No viable backend for scaled_dot_product_attention was found. ",
      "This is likely due to turning off both the math kernel and the fused kernels.");
  for (const auto backend : order()) {
    if ((backend == SDPBackend::flash_attention && can_use_flash_attention(params, false)) ||
        (backend == SDPBackend::efficient_attention && can_use_efficient_attention(params, false)) ||
        (backend == SDPBackend::math && context.userEnabledMathSDP())) {
      return static_cast<int64_t>(backend);
    }
  }
  TORCH_WARN("Memory efficient kernel not used because:");
  can_use_efficient_attention(params, true);
  TORCH_WARN("Flash attention kernel not used because:");
  can_use_flash_attention(params, true);
  TORCH_WARN("cuDNN attention kernel not used because:");
  TORCH_WARN("Simulated GPUs have no cuDNN attention.");
  TORCH_CHECK(false, "No available kernel. Aborting execution.");
}

template <class... Groups>  // `enable_gqa`, from 2.5
int64_t choose_by_arguments(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const SIM_OPTIONAL<at::Tensor>& mask,
    double dropout, bool is_causal, SIM_OPTIONAL<double> /*scale*/, Groups... groups) {
  return choose({query, key, value, mask, dropout, is_causal, groups...});
}

}  // namespace

#else

namespace {

constexpr int64_t kMath = 0, kFlash = 1, kEfficient = 2;  // ATen/SDPBackend.h

// The CPU's own choice, which asks nothing that depends on the device. GPUs have no fused attention for float64, and no
// flash attention with a mask.
template <class... Rest>
int64_t choose_by_arguments(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const SIM_OPTIONAL<at::Tensor>& mask,
    double dropout, bool is_causal, Rest... rest) {
  torch::jit::Stack stack;
  torch::jit::push(stack, query, key, value, mask, dropout, is_causal, rest...);
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::_fused_sdp_choice", "");
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
  if (stack.front().toInt() != kFlash || query.scalar_type() == at::kDouble) {
    return kMath;
  }
  return has_fused_host_attention() ? kEfficient : kFlash;
}

}  // namespace

#endif

namespace {

constexpr at::native::fused_sdp_choice_fn kChoice = &choose_by_arguments;

const bool choice_registered = [] {
  at::native::_fused_sdp_choice_stub.set_cuda_dispatch_ptr(kChoice);
  return true;
}();

}  // namespace

void register_kernels(Registrar& registrar) {
  registrar.impl("_fused_sdp_choice", kChoice);
}

}  // namespace sim::sdp_choice
