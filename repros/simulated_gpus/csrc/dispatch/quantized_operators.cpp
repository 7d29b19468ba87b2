// Quantized tensors on a device: the operators that CUDA has for them, run by the kernels for the CPU's.
//
// Contracts held: native_functions.yaml (`QuantizedCUDA`, the same in all releases) and ATen/native/Copy.cpp
// (`copy_impl`). Max pooling and the layers of `torch.ops.quantized`, which are cuDNN's, are not there. The others,
// arithmetic among them, PyTorch itself refuses in the words that it has for CUDA.
#include "dispatch/quantized_operators.h"

#include "dispatch/fallback.h"
#include "runtime/cuda_errors.h"
#include "runtime/memory.h"
#include "runtime/quantized.h"
#include "runtime/sync.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>

namespace sim::quantized_operators {

namespace {

constexpr const char* kOfQuantized[] = {
    "_adaptive_avg_pool2d",
    "_empty_affine_quantized",
    "_empty_per_channel_affine_quantized",
    "_index_put_impl_",
    "_reshape_alias",
    "as_strided",
    "clone",
    "dequantize.self",
    "empty.memory_format",
    "empty_like",
    "empty_quantized",
    "empty_strided",
    "fill_.Scalar",
    "fill_.Tensor",
    "flip",
    "gelu",
    "index_select",
    "index_select.out",
    "int_repr",
    "masked_fill_.Scalar",
    "masked_fill_.Tensor",
    "max.dim",
    "min.dim",
    "q_per_channel_axis",
    "q_per_channel_scales",
    "q_per_channel_zero_points",
    "q_scale",
    "q_zero_point",
    "qscheme",
    "relu",
    "relu_",
    "set_.source_Storage_storage_offset",
    "squeeze",
    "squeeze.dim",
    "squeeze.dims",
    "unfold",
    "unsqueeze",
    "view",
};

at::Tensor& copy_quantized(at::Tensor& self, const at::Tensor& from, bool non_blocking) {
  check_context();
  note_sync_of_copy(self, from, non_blocking);
  const at::AutoDispatchBelowADInplaceOrView below;
  TORCH_CHECK(
      !self.is_quantized() || from.is_quantized() || self.device() == from.device(),
      self.qscheme() == at::kPerTensorAffine ? "quantize_tensor_per_tensor_affine"
                                             : "quantize_tensor_per_channel_affine",
      " expects a quantized and float tensors to be on the same device.");
  const auto host = host_alias(self);
  host.copy_(host_alias(from), non_blocking);
  if (is_sim(self) && self.is_quantized()) {
    set_quantizer(self, host);
  }
  return self;
}

}  // namespace

void register_kernels(Registrar& registrar) {
  for (const char* name : kOfQuantized) {
    registrar.impl(name, c10::KernelFunction::makeFromBoxedFunction<&run_on_host>());
  }
  registrar.impl("copy_", &copy_quantized);
}

}  // namespace sim::quantized_operators
