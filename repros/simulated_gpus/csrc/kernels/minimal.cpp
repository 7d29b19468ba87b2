// The operators that every backend must implement: allocation, copies between devices, views.
//
// Contracts held: native_functions.yaml (signatures), ATen/native/Copy.cpp (a copy to or from an external device calls
// `_copy_from`).
#include "dispatch/determinism.h"
#include "kernels/kernels.h"
#include "runtime/cuda_errors.h"
#include "runtime/device.h"
#include "runtime/memory.h"
#include "runtime/sync.h"
#include "torch_versions.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/view_native.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>

#include <cstring>

namespace sim::minimal {

namespace {

using Device = SIM_OPTIONAL<c10::Device>;
using Layout = SIM_OPTIONAL<c10::Layout>;
using ScalarType = SIM_OPTIONAL<c10::ScalarType>;

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::CUDA);

void check_layout(const Layout& layout) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      layout.value_or(c10::kStrided) == c10::kStrided,
      "the simulated accelerator holds strided tensors only, not one of layout ", *layout);
}

c10::ScalarType type_or_default(const ScalarType& type) {
  return type.value_or(c10::typeMetaToScalarType(c10::get_default_dtype()));
}

c10::Device device_or_current(const Device& device) {
  return {kDevice, device.has_value() && device->has_index() ? device->index() : current_device()};
}

at::Tensor empty(
    c10::IntArrayRef size, ScalarType type, Layout layout, Device device, SIM_OPTIONAL<bool> /*pin*/,
    SIM_OPTIONAL<c10::MemoryFormat> format) {
  check_layout(layout);
  const c10::DeviceGuard guard(device_or_current(device));
  return fill_new_memory(
      at::detail::empty_generic(size, c10::GetAllocator(kDevice), kKeys, type_or_default(type), format));
}

at::Tensor empty_strided(
    c10::IntArrayRef size, c10::IntArrayRef stride, ScalarType type, Layout layout, Device device,
    SIM_OPTIONAL<bool> /*pin*/) {
  check_layout(layout);
  const c10::DeviceGuard guard(device_or_current(device));
  return fill_new_memory(
      at::detail::empty_strided_generic(size, stride, c10::GetAllocator(kDevice), kKeys, type_or_default(type)));
}

bool is_plain_memory(const at::Tensor& tensor) {
  constexpr c10::DispatchKeySet kOther(
      {c10::DispatchKey::Conjugate, c10::DispatchKey::Negative, c10::DispatchKey::ZeroTensor});
  return (is_sim(tensor) || tensor.device().is_cpu()) && tensor.layout() == c10::kStrided && tensor.has_storage() &&
      !tensor.is_quantized() && !tensor.key_set().has_any(kOther) && tensor.is_contiguous();
}

// Whether a copy is a memcpy of less than PyTorch's grain size for threads.
bool is_small_copy(const at::Tensor& to, const at::Tensor& from) {
  return to.dtype() == from.dtype() && to.sizes() == from.sizes() && to.numel() > 0 &&
      to.numel() < at::internal::GRAIN_SIZE && is_plain_memory(to) && is_plain_memory(from);
}

void copy_elements(const at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  check_context();
  note_sync_of_copy(to, from, non_blocking);
  if (is_small_copy(to, from)) {
    std::memmove(to.data_ptr(), from.data_ptr(), from.nbytes());
    return;
  }
  const at::AutoDispatchBelowADInplaceOrView below;
  kept_alias(to).copy_(kept_alias(from), non_blocking);
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  copy_elements(to, from, non_blocking);
  return to;
}

// PyTorch's `copy_` names CUDA among the devices that have a kernel for copies (ATen/native/Copy.cpp).
at::Tensor& copy_in_place(at::Tensor& self, const at::Tensor& from, bool non_blocking) {
  copy_elements(self, from, non_blocking);
  return self;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  to.resize_(from.sizes());
  return copy_from(from, to, /*non_blocking=*/false);
}

at::Tensor as_strided(
    const at::Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride, SIM_OPTIONAL<int64_t> storage_offset) {
  return at::native::as_strided_tensorimpl(self, size, stride, storage_offset);
}

at::Tensor view(const at::Tensor& self, c10::IntArrayRef size) {
  return at::native::view(self, size);
}

at::Tensor reshape_alias(const at::Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride) {
  return at::native::_reshape_alias(self, size, stride);
}

// Zeros without memory, which derivatives pass on: the key set marks them as zeros.
at::Tensor efficient_zero_tensor(
    c10::IntArrayRef size, ScalarType type, Layout layout, Device device, SIM_OPTIONAL<bool> /*pin*/) {
  check_layout(layout);
  // As in PyTorch's own kernels for it: the storage keeps the allocator's address, and zeros without memory are never
  // resized.
  at::native::ZeroTensorAllocator allocator(device_or_current(device));
  return at::detail::empty_generic(
      size, &allocator, kKeys | c10::DispatchKeySet(c10::DispatchKey::ZeroTensor), type_or_default(type),
      SIM_OPTIONAL<c10::MemoryFormat>());
}

// A block is freed with its last tensor; no work runs later that could still use it.
void record_stream(at::Tensor& /*self*/, c10::Stream /*stream*/) {}

}  // namespace

void register_kernels(Registrar& registrar) {
  registrar.impl("empty.memory_format", &empty);
  registrar.impl("empty_strided", &empty_strided);
  registrar.impl("_copy_from", &copy_from);
  registrar.impl("_copy_from_and_resize", &copy_from_and_resize);
  registrar.impl("copy_", &copy_in_place);
  registrar.impl("as_strided", &as_strided);
  registrar.impl("view", &view);
  registrar.impl("_reshape_alias", &reshape_alias);
  registrar.impl("record_stream", &record_stream);
  registrar.impl("_efficientzerotensor", &efficient_zero_tensor);
}

// For the keys of lazy conjugation and negation, which PyTorch resolves by a copy. So a copy must accept tensors that
// are still marked; resolving the mark first would copy again, without end.
void register_lazy_kernels(Registrar& registrar) {
  registrar.impl("_copy_from", c10::KernelFunction::makeFallthrough());
}

}  // namespace sim::minimal
