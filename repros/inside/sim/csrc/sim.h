// The simulated accelerator, as its translation units see each other.
#pragma once

#include "seams.h"

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/Device.h>
#include <c10/core/Storage.h>
#include <c10/util/FunctionRef.h>

namespace sim {

constexpr auto kDevice = c10::DeviceType::PrivateUse1;

// --- device.cpp: which devices there are and which is current on this thread
c10::DeviceIndex device_count();
c10::DeviceIndex current_device();
c10::DeviceIndex exchange_device(c10::DeviceIndex index);

// --- memory.cpp: device memory is host memory, seen twice
// The host storage underneath a device storage: the same bytes, tagged "cpu".
c10::Storage host_storage(const c10::Storage& device);
// A device storage that takes a host storage over. No byte is copied.
c10::Storage adopt(const c10::Storage& host, c10::DeviceIndex index);
// Carries a host storage's new size and address to the device storage over it, after a kernel has resized it.
void follow_host(const c10::Storage& device);
void resize_storage(const c10::Storage& device, size_t bytes);

bool is_sim(const at::Tensor& tensor);
void check_strided(const at::Tensor& tensor);
// A tensor of the same shape, strides and lazy conjugation over `storage`: a CPU tensor like `device`, or the reverse.
at::Tensor host_tensor(const at::Tensor& device, const c10::Storage& storage);
at::Tensor device_tensor(const at::Tensor& host, const c10::Storage& storage);
// A CPU tensor over the same bytes. A tensor that is not on a simulated device is returned as it is.
at::Tensor host_alias(const at::Tensor& tensor);
std::vector<at::Tensor> host_aliases(const std::vector<at::Tensor>& tensors);

// --- pinned.cpp: host memory that is marked as pinned. All of it is as good, but programs ask.
c10::Allocator* pinned_allocator();
bool is_pinned(const void* pointer);

// --- generator.cpp
const at::Generator& default_generator(c10::DeviceIndex index);
at::Generator make_generator(c10::DeviceIndex index);
// The host generator that draws for `given` (undefined: for the default one of `index`).
at::Generator host_generator(const SIM_OPTIONAL<at::Generator>& given, c10::DeviceIndex index);

// --- placement.cpp: CUDA's contract on which devices an operator's arguments may be on
using Placement = SIM_OPTIONAL<c10::Device>;
// Throws where CUDA would; otherwise gives the device the operator runs on, if a tensor or a device argument says so.
Placement check_placement(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments);
// The check that torchgen writes, of all arguments but the one of that name.
Placement check_all_but(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments, const char* name);
// The same for a kernel that iterates over its tensors, but for those that it first brings over or only reads.
using IsBrought = c10::function_ref<bool(const c10::Argument& argument, const at::Tensor& tensor)>;
Placement check_iterator(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments, IsBrought is_brought);
bool is_written(const c10::Argument& argument);
// Whether CUDA leaves the check to the operator's own kernel.
bool kernel_checks_placement(const c10::FunctionSchema& schema);
// Whether the CPU and CUDA have kernels of an operator that has a composite one, too, for other devices.
bool has_composite_for_others(const c10::FunctionSchema& schema);

// --- kernel_checks.cpp: the kernels of CUDA that check by themselves, in words of their own
using PlacementCheck = Placement (*)(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments);
// The check of an operator by its full name; null for all others.
PlacementCheck kernel_check(const std::string& name);

// --- fallback.cpp: any operator, by its CPU kernel on aliases
void run_on_host(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);
// The kernel that PyTorch has for a device without one of its own.
void run_composite(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

// --- half.cpp: the CPU kernel itself; by way of float32 where it does not know float16
void call_host_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// --- hooks.cpp
void register_hooks();

}  // namespace sim
