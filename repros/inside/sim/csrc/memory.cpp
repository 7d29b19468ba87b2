// Device memory: host memory that two storages share.
//
// Each device storage owns a Block, and a Block owns the host storage over the same bytes. So a CPU kernel can be given an
// alias without a copy, its result can become device memory without a copy, and a storage that a kernel resized is found
// again. The accounting is per device and counts every byte that a device storage holds, however it came about.
//
// Contract held: c10/core/Allocator.h (memory comes from the current device; a null pointer for zero bytes).
#include "sim.h"

#include <ATen/TensorUtils.h>
#include <ATen/native/Resize.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <array>
#include <atomic>
#include <cstring>

namespace sim {

namespace {

struct Account {
  std::atomic<uint64_t> allocated{0};
  std::atomic<uint64_t> peak{0};
  std::atomic<uint64_t> requests{0};

  void take(uint64_t bytes) {
    const uint64_t now = allocated.fetch_add(bytes) + bytes;
    uint64_t seen = peak.load();
    while (seen < now && !peak.compare_exchange_weak(seen, now)) {
    }
    ++requests;
  }
};

// Never destroyed: tensors outlive static objects when the interpreter ends.
Account& account(c10::DeviceIndex index) {
  static auto* const accounts = new std::array<Account, 128>;
  return accounts->at(static_cast<size_t>(index));
}

struct Block {
  c10::Storage host;
  c10::DeviceIndex index;
  uint64_t bytes;

  static void release(void* context) {
    auto* block = static_cast<Block*>(context);
    account(block->index).allocated -= block->bytes;
    delete block;
  }
};

c10::DataPtr pointer_to(const c10::Storage& host, c10::DeviceIndex index) {
  auto* block = new Block{host, index, host.nbytes()};
  account(index).take(block->bytes);
  return {const_cast<void*>(host.data_ptr().get()), block, &Block::release, c10::Device(kDevice, index)};
}

// Null for memory that did not come from here (a storage over somebody else's pointer).
Block* block_of(const c10::Storage& device) {
  const c10::DataPtr& pointer = device.data_ptr();
  return pointer.get_deleter() == &Block::release ? static_cast<Block*>(pointer.get_context()) : nullptr;
}

struct Allocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) {
    return static_cast<const Allocator*>(this)->allocate(bytes);
  }
  c10::DataPtr allocate(size_t bytes) const {
    auto* cpu = c10::GetCPUAllocator();
    const c10::Storage host(c10::Storage::use_byte_size_t(), bytes, cpu->allocate(bytes), cpu, /*resizable=*/true);
    return pointer_to(host, current_device());
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return nullptr;  // a block's context is not its address, so raw allocation is not offered
  }
  void copy_data(void* to, const void* from, size_t bytes) const {
    std::memcpy(to, from, bytes);
  }
};

Allocator allocator;
REGISTER_ALLOCATOR(kDevice, &allocator);

at::Tensor tensor_like(const at::Tensor& model, const c10::Storage& storage, c10::DispatchKey key) {
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(storage), c10::DispatchKeySet(key), model.dtype());
  auto* impl = tensor.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(model.sizes(), model.strides());
  impl->set_storage_offset(model.storage_offset());
  impl->_set_conj(model.is_conj());
  impl->_set_neg(model.is_neg());
  if (model.unsafeGetTensorImpl()->is_wrapped_number()) {
    impl->set_wrapped_number(true);  // a Python number, which has no say in the result's type
  }
  return tensor;
}

}  // namespace

MemoryStatistics memory_statistics(c10::DeviceIndex index) {
  const Account& of = account(index);
  return {of.allocated.load(), of.peak.load(), of.requests.load()};
}

void reset_peak(c10::DeviceIndex index) {
  account(index).peak = account(index).allocated.load();
}

c10::Storage host_storage(const c10::Storage& device) {
  if (const Block* block = block_of(device)) {
    return block->host;
  }
  // The lambda's copy of `device` keeps the foreign memory alive as long as this view of it.
  auto* keeper = new c10::Storage(device);
  c10::DataPtr view(
      const_cast<void*>(device.data_ptr().get()), keeper, [](void* held) { delete static_cast<c10::Storage*>(held); },
      c10::Device(c10::DeviceType::CPU));
  return {c10::Storage::use_byte_size_t(), device.nbytes(), std::move(view), nullptr, /*resizable=*/false};
}

c10::Storage adopt(const c10::Storage& host, c10::DeviceIndex index) {
  return {c10::Storage::use_byte_size_t(), host.nbytes(), pointer_to(host, index), &allocator, /*resizable=*/true};
}

void follow_host(const c10::Storage& device) {
  const Block* block = block_of(device);
  if (block == nullptr || (block->host.nbytes() == device.nbytes() && block->host.data_ptr().get() == device.data_ptr().get())) {
    return;
  }
  const c10::Storage host = block->host;  // the old block goes when its pointer is replaced
  device.unsafeGetStorageImpl()->set_data_ptr_noswap(pointer_to(host, block->index));
  device.unsafeGetStorageImpl()->set_nbytes(host.nbytes());
}

void resize_storage(const c10::Storage& device, size_t bytes) {
  at::native::resize_bytes_cpu(host_storage(device).unsafeGetStorageImpl(), bytes);
  follow_host(device);
}

bool is_sim(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == kDevice;
}

void check_strided(const at::Tensor& tensor) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      tensor.layout() == c10::kStrided && tensor.has_storage(),
      "the simulated accelerator holds strided tensors only, not one of layout ", tensor.layout());
}

at::Tensor host_tensor(const at::Tensor& device, const c10::Storage& storage) {
  return tensor_like(device, storage, c10::DispatchKey::CPU);
}

at::Tensor device_tensor(const at::Tensor& host, const c10::Storage& storage) {
  return tensor_like(host, storage, c10::DispatchKey::PrivateUse1);
}

at::Tensor host_alias(const at::Tensor& tensor) {
  if (!is_sim(tensor)) {
    return tensor;
  }
  check_strided(tensor);
  return host_tensor(tensor, host_storage(tensor.storage()));
}

std::vector<at::Tensor> host_aliases(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> aliases;
  aliases.reserve(tensors.size());
  for (const auto& tensor : tensors) {
    aliases.push_back(host_alias(tensor));
  }
  return aliases;
}

}  // namespace sim
