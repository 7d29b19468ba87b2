// Contracts held: ATen/SparseTensorImpl.h and ATen/NestedTensorImpl.h. The sizes of nested tensors are on the host
// whatever the device is.
#include "dispatch/layouts.h"

#include "runtime/memory.h"
#include "torch_versions.h"

#include <ATen/NestedTensorImpl.h>
#include <ATen/SparseTensorImpl.h>
#include <c10/core/InferenceMode.h>

#include <utility>

namespace sim::layouts {

namespace {

at::SparseTensorImpl& sparse_impl(const at::Tensor& tensor) {
  return *static_cast<at::SparseTensorImpl*>(tensor.unsafeGetTensorImpl());
}

}  // namespace

bool is_sparse(const at::Tensor& tensor) {
  return tensor.defined() && tensor.layout() == c10::kSparse;
}

bool is_nested(const at::Tensor& tensor) {
  return tensor.defined() && tensor.unsafeGetTensorImpl()->key_set().has(c10::DispatchKey::NestedTensor) &&
      !tensor.unsafeGetTensorImpl()->key_set().has(c10::DispatchKey::Python);
}

void set_sparse(const at::Tensor& to, const at::Tensor& from, ToPart part) {
  auto &target = sparse_impl(to), &model = sparse_impl(from);
  target.raw_resize_(model.sparse_dim(), model.dense_dim(), from.sizes());
  target.set_indices_and_values_unsafe(part(model.indices()), part(model.values()));
  target.set_coalesced(model.coalesced());
}

at::Tensor sparse_over(const at::Tensor& tensor, ToPart part) {
  const auto key = is_sim(tensor) ? c10::DispatchKey::SparseCPU : c10::DispatchKey::SparseCUDA;
  auto made = at::detail::make_tensor<at::SparseTensorImpl>(c10::DispatchKeySet(key), tensor.dtype());
  set_sparse(made, tensor, part);
  return made;
}

at::Tensor nested_over(const at::Tensor& tensor, ToStorage storage) {
  const auto& impl = *static_cast<at::native::NestedTensorImpl*>(tensor.unsafeGetTensorImpl());
  const auto cpu = c10::BackendComponent::CPUBit, cuda = c10::BackendComponent::CUDABit;
  const bool is_device = is_sim(tensor);
  const auto keys = impl.key_set().remove_backend(is_device ? cuda : cpu) | c10::DispatchKeySet(is_device ? cpu : cuda);
#if SIM_TORCH_AT_LEAST(2, 1)
  const auto &sizes = impl.get_nested_sizes(), &strides = impl.get_nested_strides();
#else
  const auto &sizes = impl.get_nested_size_tensor(), &strides = impl.get_nested_stride_tensor();
#endif
  auto offsets = impl.get_storage_offsets();
  const c10::InferenceMode not_for_inference(false);  // a view of it, made by the kernel, could not share its version
  return at::detail::make_tensor<at::native::NestedTensorImpl>(
      storage(tensor.unsafeGetTensorImpl()->unsafe_storage()), keys, tensor.dtype(), sizes, strides,
      std::move(offsets));
}

}  // namespace sim::layouts
