// Declarations shared by the sources of the simulated accelerator.
#pragma once

#include "seams.h"

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/Device.h>
#include <c10/core/Storage.h>
#include <c10/core/Stream.h>
#include <c10/util/FunctionRef.h>

// For functions that every operator runs: inlines all that they call, such as PyTorch's accessors, which -O1 does not.
#define SIM_HOT __attribute__((flatten))

namespace sim {

// CUDA's device type and dispatch key, which nobody serves where PyTorch finds no GPU.
constexpr auto kDevice = c10::DeviceType::CUDA;
// The NCCL whose words the errors are.
constexpr const char* kNcclVersion = "2.27.5";

// --- device.cpp: the number of devices; this thread's current device, and its current stream on each
c10::DeviceIndex device_count();
c10::DeviceIndex current_device();
c10::DeviceIndex exchange_device(c10::DeviceIndex index);
c10::StreamId new_stream();
c10::StreamId current_stream(c10::DeviceIndex index);
void set_stream(c10::DeviceIndex index, c10::StreamId id);

// CUDA does not survive a fork: lets each process that is forked from now on call `require`, which makes PyTorch initialise CUDA again
// (and refuse that), and ends its context.
void poison_forks(void (*require)());

// --- cuda_errors.cpp: errors of CUDA's runtime, by its numbers (driver_types.h)
constexpr int kInitializationError = 3;
constexpr int kInvalidDevice = 101;
constexpr int kInvalidHandle = 400;
constexpr int kDeviceAssert = 710;
// Throws what PyTorch does when the runtime reports one of them.
[[noreturn]] void throw_cuda_error(int code);
// Sets what has ended this process's context, or 0, and returns what it was. Throws it, if there is one.
int exchange_context_error(int code);
void check_context();
// Throws `device-side assert triggered`, and ends the context, if a GPU's kernel would fail an assertion where the host's has raised this.
void assert_on_device(const c10::FunctionSchema& schema, const c10::Error& error);

// --- determinism.cpp: `torch.use_deterministic_algorithms`
// Raises CUDA's error, or warns, if its kernel for this call is not deterministic and the program has asked for ones that are.
void alert_nondeterministic(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments);
// Fills new memory with the values that PyTorch then gives to it; returns the tensor.
at::Tensor fill_new_memory(at::Tensor tensor);

// --- sync.cpp: `torch.cuda.set_sync_debug_mode`
// Sets the mode (0 is silent, 1 warns, 2 raises) and returns the one before.
int exchange_sync_mode(int mode);
// Warns or raises, as the mode says: the host waits for a GPU now; would wait in this call; would wait for this copy.
void note_sync();
void note_sync_of(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments);
void note_sync_of_copy(const at::Tensor& to, const at::Tensor& from, bool non_blocking);

// --- threads.cpp: called before a backward pass, and before a kernel of the host runs
void note_threads();
void agree_on_threads();

// --- backward.cpp
// Whether a backward pass from these tensors can run in this thread, unnoticed by the program.
bool can_run_in_callers_thread(const std::vector<at::Tensor>& roots);
// A tensor that is saved for backward may call Python from now on, when it is read.
void expect_saved_tensor_hooks();

// --- memory.cpp: device memory is host memory under two storages
// The host storage underneath a device storage: the same bytes, tagged "cpu".
c10::Storage host_storage(const c10::Storage& device);
// A device storage over a host storage. No byte is copied.
c10::Storage adopt(const c10::Storage& host, c10::DeviceIndex index);
// Updates a device storage's size and address after a kernel has resized the host storage underneath.
void follow_host(const c10::Storage& device);
void resize_storage(const c10::Storage& device, size_t bytes);

bool is_sim(const at::Tensor& tensor);
// Whether a tensor is device memory that every kernel of the host can work on in its place (it lacks some for float16, half.cpp).
bool is_plain(const at::Tensor& tensor);
void check_strided(const at::Tensor& tensor);
// A tensor of the same shape, strides and lazy conjugation over `storage`: a CPU tensor like `device`, or the reverse.
at::Tensor host_tensor(const at::Tensor& device, c10::Storage storage);
at::Tensor device_tensor(const at::Tensor& host, c10::Storage storage);
// A device tensor over a new tensor of the host, which is its kept alias from then on. An undefined tensor is returned unchanged.
at::Tensor adopt_result(at::Tensor host, c10::DeviceIndex index);
// A CPU tensor over the same bytes. A tensor on another device is returned unchanged.
at::Tensor host_alias(const at::Tensor& tensor);
// The same, kept for the next call where it can be: for kernels that change nothing of an alias but its elements.
at::Tensor kept_alias(const at::Tensor& tensor);
std::vector<at::Tensor> host_aliases(const std::vector<at::Tensor>& tensors);

// --- kernel_checks.cpp
// Whether an index is a mask, whose true elements are chosen.
bool is_mask(const at::Tensor& tensor);
// Whether masked_fill_, which reads the value, does an assignment by index: one mask, and one number of the host.
bool is_masked_fill(const at::Tensor& self, const c10::IValue& indices, const at::Tensor& value);

// --- pinned.cpp: host memory that reports itself as pinned
c10::Allocator* pinned_allocator();
bool is_pinned(const void* pointer);
// `cudaHostRegister` and its reverse; false if the memory is registered already, or is not.
bool register_host(uintptr_t address, size_t bytes);
bool unregister_host(uintptr_t address);

// --- generator.cpp
const at::Generator& default_generator(c10::DeviceIndex index);
at::Generator make_generator(c10::DeviceIndex index);
// Remembers what a state from another process tells of its place, before somebody copies the visible bytes.
void learn_state(const c10::TensorImpl& state);
// The host generator underneath `given` (if undefined: underneath the default generator of `index`).
at::Generator host_generator(const SIM_OPTIONAL<at::Generator>& given, c10::DeviceIndex index);

// --- placement.cpp: the devices that an operator's arguments may be on, by CUDA's rules
using Placement = SIM_OPTIONAL<c10::Device>;
// Throws where CUDA would. Otherwise returns the device the operator runs on, if a tensor or a device argument determines it.
Placement check_placement(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments);
// The check that torchgen generates, of all arguments except the one of that name.
Placement check_all_but(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments, const char* name);
// The same in the words of another kernel, which CUDA calls in its place.
Placement check_as(
    const char* method, const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments, const char* except = "");
// TensorIterator's check, of all tensors except those that the kernel copies to the device first, or only reads.
using IsExempt = c10::function_ref<bool(const c10::Argument& argument, const at::Tensor& tensor)>;
Placement check_iterator(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments, IsExempt is_exempt);
bool is_written(const c10::Argument& argument);
// Whether CUDA leaves the check to the operator's own kernel.
bool kernel_checks_placement(const c10::FunctionSchema& schema);
// Whether an operator has kernels for the CPU and CUDA, and a composite one for other devices.
bool has_composite_for_others(const c10::FunctionSchema& schema);

// --- kernel_checks.cpp: CUDA's kernels that have their own check and message
using PlacementCheck = Placement (*)(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments);
// The check of an operator with its own, by full name; null for other operators.
PlacementCheck kernel_check(const std::string& name);

// --- composites.cpp: which operators have a kernel here before PyTorch's composite one
// Calls `each` with every operator of ATen's and its full name.
void for_each_operator(c10::function_ref<void(const c10::OperatorHandle& op, const std::string& name)> each);
// A structured operator whose placement check is part of its shape check: PyTorch raises the error, if there is one.
void run_structured(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

// --- foreach.cpp
// Runs a foreach operator. Unless all its tensors are on one device, the CPU's kernel calls an operator on each, on its own device.
void run_each(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);
// Counts a change of each tensor, unless PyTorch does not count here.
void bump_versions(at::TensorList tensors);

// --- fallback.cpp: any operator, run by its CPU kernel on host aliases
void run_on_host(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);
// Runs PyTorch's composite kernel, the one for devices without a kernel of their own.
void run_composite(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

// --- half.cpp: the CPU kernel itself; in float32 where it does not support float16
void call_host_kernel(const c10::OperatorHandle& op, c10::DispatchKey key, torch::jit::Stack* stack);
// `_softmax` and `_log_softmax`; what computes their gradients.
void run_softmax(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);
void run_softmax_backward(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

}  // namespace sim
