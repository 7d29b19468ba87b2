// Pinned memory: `Tensor.pin_memory()`, `Tensor.is_pinned()` and a DataLoader's `pin_memory=True`.
//
// Contracts held: ATen/native/Memory.cpp, and CUDA's runtime for memory that a program registers itself. A pinned
// tensor is a CPU tensor that reports itself as pinned. For this device all host memory is equal; the pinned blocks are
// recorded, as CUDA's host allocator does.
#include "runtime/pinned.h"

#include "torch_versions.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <cstring>
#include <map>
#include <mutex>

namespace sim::pinned {

namespace {

struct Pinned {
  std::mutex mutex;
  std::map<uintptr_t, size_t> blocks;  // begin and size
};

// Never destroyed: tensors outlive static objects when the interpreter ends.
Pinned& pinned() {
  static auto* const all = new Pinned;
  return *all;
}

void release(void* context) {
  auto* memory = static_cast<c10::DataPtr*>(context);
  {
    const std::lock_guard<std::mutex> lock(pinned().mutex);
    pinned().blocks.erase(reinterpret_cast<uintptr_t>(memory->get()));
  }
  delete memory;
}

struct PinnedAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) {
    return static_cast<const PinnedAllocator*>(this)->allocate(bytes);
  }
  c10::DataPtr allocate(size_t bytes) const {
    auto* memory = new c10::DataPtr(c10::GetCPUAllocator()->allocate(bytes));
    if (memory->get() != nullptr) {
      const std::lock_guard<std::mutex> lock(pinned().mutex);
      pinned().blocks[reinterpret_cast<uintptr_t>(memory->get())] = bytes;
    }
    return {memory->get(), memory, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return nullptr;
  }
  void copy_data(void* to, const void* from, size_t bytes) const {
    std::memcpy(to, from, bytes);
  }
};

// PyTorch calls these by dispatch key (2.0 to about 2.6) or through the hooks (later).
bool tensor_is_pinned(const at::Tensor& self, SIM_OPTIONAL<c10::Device> /*device*/) {
  return self.device().is_cpu() && is_pinned(self.storage().data_ptr().get());
}

at::Tensor pin_tensor(const at::Tensor& self, SIM_OPTIONAL<c10::Device> /*device*/) {
  TORCH_CHECK(self.device().is_cpu(), "cannot pin '", self.toString(), "' only dense CPU tensors can be pinned");
  const at::AutoDispatchBelowADInplaceOrView below;
  at::Tensor copy = at::detail::empty_strided_generic(
      self.sizes(), self.strides(), pinned_allocator(), c10::DispatchKeySet(c10::DispatchKey::CPU), self.scalar_type());
  return copy.copy_(self);
}

}  // namespace

c10::Allocator* pinned_allocator() {
  static PinnedAllocator allocator;
  return &allocator;
}

bool is_pinned(const void* pointer) {
  const std::lock_guard<std::mutex> lock(pinned().mutex);
  const auto& blocks = pinned().blocks;
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  auto after = blocks.upper_bound(address);
  return after != blocks.begin() && (--after, address < after->first + after->second);
}

bool register_host(uintptr_t address, size_t bytes) {
  const std::lock_guard<std::mutex> lock(pinned().mutex);
  return pinned().blocks.emplace(address, bytes).second;
}

bool unregister_host(uintptr_t address) {
  const std::lock_guard<std::mutex> lock(pinned().mutex);
  return pinned().blocks.erase(address) > 0;
}

void register_kernels(Registrar& registrar) {
  registrar.impl("is_pinned", &tensor_is_pinned);
  registrar.impl("_pin_memory", &pin_tensor);
}

}  // namespace sim::pinned
