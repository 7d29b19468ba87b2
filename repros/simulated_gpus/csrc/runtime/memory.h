// Device memory is host memory under two storages.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Storage.h>

#include <vector>

namespace sim::memory {

// The host storage underneath a device storage: the same bytes, tagged "cpu".
c10::Storage host_storage(const c10::Storage& device);
// A device storage over a host storage. No byte is copied.
c10::Storage adopt(const c10::Storage& host, c10::DeviceIndex index);
// Updates a device storage's size and address after a kernel has resized the host storage underneath.
void follow_host(const c10::Storage& device);
void resize_storage(const c10::Storage& device, size_t bytes);

bool is_sim(const at::Tensor& tensor);
// Whether a tensor is device memory whose host alias every kernel of the CPU accepts, apart from element types that it
// lacks (upcast.cpp).
bool is_plain(const at::Tensor& tensor);
// A device tensor over a new tensor of the host, which is its kept alias from then on. An undefined tensor is returned
// unchanged.
at::Tensor adopt_result(at::Tensor host, c10::DeviceIndex index);
// A CPU tensor over the same bytes. A tensor on another device is returned unchanged.
[[gnu::noinline]] at::Tensor host_alias(const at::Tensor& tensor);
// The same, kept for the next call where it can be: for kernels that change nothing of an alias but its elements.
at::Tensor kept_alias(const at::Tensor& tensor);

}  // namespace sim::memory

namespace sim::aliases {

void check_strided(const at::Tensor& tensor);
// A tensor of the same shape, strides and lazy conjugation over `storage`: a CPU tensor like `device`, or the reverse.
at::Tensor host_tensor(const at::Tensor& device, c10::Storage storage);
at::Tensor device_tensor(const at::Tensor& host, c10::Storage storage);
std::vector<at::Tensor> host_aliases(const std::vector<at::Tensor>& tensors);

}  // namespace sim::aliases

namespace sim {

using aliases::check_strided, aliases::device_tensor, aliases::host_aliases, aliases::host_tensor;
using memory::adopt, memory::adopt_result, memory::follow_host, memory::host_alias, memory::host_storage,
    memory::is_plain, memory::is_sim, memory::kept_alias, memory::resize_storage;

}  // namespace sim
