// Aliases: tensors of the other backend over the same memory, with the same shape, strides and lazy conjugation.
#include "runtime/memory.h"
#include "runtime/quantized.h"

#include <ATen/TensorUtils.h>
#include <c10/core/TensorImpl.h>

#include <utility>

namespace sim::aliases {

namespace {

at::Tensor tensor_like(const at::Tensor& model, c10::Storage storage, c10::DispatchKeySet keys) {
  auto tensor = model.is_quantized()
      ? quantized_over(model, std::move(storage))
      : at::detail::make_tensor<c10::TensorImpl>(std::move(storage), keys, model.dtype());
  auto* impl = tensor.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(model.sizes(), model.strides());
  impl->set_storage_offset(model.storage_offset());
  if (model.is_conj()) {
    impl->_set_conj(true);
  }
  if (model.is_neg()) {
    impl->_set_neg(true);
  }
  if (model.unsafeGetTensorImpl()->is_wrapped_number()) {
    impl->set_wrapped_number(true);  // a Python number, which does not influence the result's type
  }
  return tensor;
}

}  // namespace

void check_strided(const at::Tensor& tensor) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      tensor.layout() == c10::kStrided && tensor.has_storage(),
      "the simulated accelerator holds strided tensors only, not one of layout ", tensor.layout());
}

at::Tensor host_tensor(const at::Tensor& device, c10::Storage storage) {
  constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::CPU);
  return tensor_like(device, std::move(storage), kKeys);
}

at::Tensor device_tensor(const at::Tensor& host, c10::Storage storage) {
  constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::CUDA);
  return tensor_like(host, std::move(storage), kKeys);
}

std::vector<at::Tensor> host_aliases(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> aliases;
  aliases.reserve(tensors.size());
  for (const auto& tensor : tensors) {
    aliases.push_back(host_alias(tensor));
  }
  return aliases;
}

}  // namespace sim::aliases
