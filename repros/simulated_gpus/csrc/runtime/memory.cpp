// Device memory: host memory shared by two storages.
//
// Each device storage owns a Block, and a Block owns the host storage over the same bytes. So a CPU kernel can use an
// alias without a copy, its result can become device memory without a copy, and a storage that a kernel resized is
// found again. Every byte of a device storage is counted for its device, however the storage was made.
//
// Contract held: c10/core/Allocator.h (memory comes from the current device; a null pointer for zero bytes).
#include "runtime/memory.h"

#include "runtime/accounts.h"
#include "runtime/device.h"
#include "torch_versions.h"

#include <ATen/native/Resize.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#if SIM_HAS_DEVICE_ALLOCATOR
#include <c10/core/CachingDeviceAllocator.h>
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <utility>

// For functions that every operator runs: inlines all that they call, such as PyTorch's accessors, which -O1 does not.
// What they call seldom, and what is large, is marked [[gnu::noinline]]: its copies took the compiler a tenth of its
// time.
#define SIM_HOT __attribute__((flatten))

namespace sim::memory {

namespace {

struct Block {
  c10::Storage host;
  Account& account;
  c10::DeviceIndex index;
  Piece* piece;
  // The first two aliases, such as those of a parameter and of its transpose. Null until made; each holds a reference.
  std::array<std::atomic<c10::TensorImpl*>, 2> aliases{};

  Block(c10::Storage host, Account& account, c10::DeviceIndex index, Piece* piece)
      : host(std::move(host)), account(account), index(index), piece(piece) {}
  ~Block() {
    for (auto& each : aliases) {
      if (auto* alias = each.load(std::memory_order_acquire)) {
        c10::raw::intrusive_ptr::decref(alias);
      }
    }
  }

  static void release(void* context) {
    auto* block = static_cast<Block*>(context);
    block->account.free(block->piece);
    delete block;
  }
};

// A device's pointer to the memory of a host storage, whose bytes are counted already.
c10::DataPtr pointer_to(c10::Storage host, Account& account, c10::DeviceIndex index, Piece* piece) {
  auto* address = const_cast<void*>(host.data_ptr().get());
  return {address, new Block(std::move(host), account, index, piece), &Block::release, c10::Device(kDevice, index)};
}

// Null for memory that another allocator made.
Block* block_of(const c10::Storage& device) {
  const c10::DataPtr& pointer = device.data_ptr();
  return pointer.get_deleter() == &Block::release ? static_cast<Block*>(pointer.get_context()) : nullptr;
}

#if SIM_HAS_DEVICE_ALLOCATOR
using AllocatorInterface = c10::DeviceAllocator;
#else
using AllocatorInterface = c10::Allocator;
#endif

struct Allocator final : AllocatorInterface {
  c10::DataPtr allocate(size_t bytes) {
    return static_cast<const Allocator*>(this)->allocate(bytes);
  }
  c10::DataPtr allocate(size_t bytes) const {
    const auto index = current_device();
    auto* cpu = c10::GetCPUAllocator();
    auto& account = account_of(index);
    auto* piece = account.allocate(bytes);  // before host memory is: it may be more than there is
    try {
      return pointer_to(
          {c10::Storage::use_byte_size_t(), bytes, cpu->allocate(bytes), cpu, /*resizable=*/true}, account, index,
          piece);
    } catch (...) {
      account.free(piece);
      throw;
    }
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return nullptr;  // a block's context is not its address, so raw allocation is not supported
  }
  void copy_data(void* to, const void* from, size_t bytes) const {
    std::memcpy(to, from, bytes);
  }

#if SIM_HAS_DEVICE_ALLOCATOR
  // The statistics of `torch.accelerator`. Every call is done when it returns: active are the blocks in use.
  bool initialized() {
    return true;
  }
  void emptyCache() {
    empty_cache();
  }
  void emptyCache(c10::MempoolId_t /*pool*/) {
    empty_cache();
  }
  void recordStream(const c10::DataPtr& /*pointer*/, c10::Stream /*stream*/) {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex index) {
    const Memory memory = account_of(index).memory();
    const Usage& usage = memory.usage;
    c10::CachingDeviceAllocator::DeviceStats stats;
    set(stats.allocation, usage.blocks);
    set(stats.active, usage.blocks);
    set(stats.segment, usage.segments);
    set(stats.inactive_split, usage.inactive);
    set(stats.allocated_bytes, usage.bytes);
    set(stats.active_bytes, usage.bytes);
    set(stats.reserved_bytes, usage.reserved);
    set(stats.inactive_split_bytes, usage.inactive_bytes);
    set(stats.requested_bytes, usage.requested);
    stats.num_alloc_retries = static_cast<int64_t>(memory.retried);
    stats.num_device_alloc = static_cast<int64_t>(usage.taken);
    stats.num_device_free = static_cast<int64_t>(usage.given);
    stats.num_ooms = static_cast<int64_t>(memory.refused);
    stats.num_sync_all_streams = static_cast<int64_t>(cache_emptied());
    stats.max_split_size = -1;
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex index) {
    account_of(index).reset_accumulated();
  }
  void resetPeakStats(c10::DeviceIndex index) {
    account_of(index).reset_peak();
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) {
    const auto reserved = account_of(index).memory().usage.reserved[0].current, all = device_bytes();
    return {all - std::min(all, reserved), all};
  }

 private:
  template <class Stats>
  static void set(Stats& stats, const Figures& figures) {
    for (size_t pool = 0; pool < figures.size(); ++pool) {
      stats[pool].current = static_cast<int64_t>(figures[pool].current);
      stats[pool].peak = static_cast<int64_t>(figures[pool].peak);
      stats[pool].allocated = static_cast<int64_t>(figures[pool].allocated);
      stats[pool].freed = static_cast<int64_t>(figures[pool].freed);
    }
  }
#endif
};

Allocator allocator;
// In the place of what a CUDA build has registered.
const bool allocator_registered = [] {
  c10::SetAllocator(kDevice, &allocator, /*priority=*/100);
  return true;
}();

}  // namespace

c10::Storage host_storage(const c10::Storage& device) {
  if (const Block* block = block_of(device)) {
    return block->host;
  }
  // The lambda's copy of `device` keeps the foreign memory alive as long as this view of it.
  auto* owner = new c10::Storage(device);
  c10::DataPtr view(
      const_cast<void*>(device.data_ptr().get()), owner,
      [](void* context) { delete static_cast<c10::Storage*>(context); }, c10::Device(c10::DeviceType::CPU));
  return {c10::Storage::use_byte_size_t(), device.nbytes(), std::move(view), nullptr, /*resizable=*/false};
}

c10::Storage adopt(const c10::Storage& host, c10::DeviceIndex index) {
  auto& account = account_of(index);
  auto* piece = account.allocate(host.nbytes());
  return {
      c10::Storage::use_byte_size_t(), host.nbytes(), pointer_to(host, account, index, piece), &allocator,
      /*resizable=*/true};
}

void follow_host(const c10::Storage& device) {
  const Block* block = block_of(device);
  if (block == nullptr ||
      (block->host.nbytes() == device.nbytes() && block->host.data_ptr().get() == device.data_ptr().get())) {
    return;
  }
  const c10::Storage host = block->host;  // replacing the pointer below frees the old block
  auto& account = block->account;
  auto* piece = account.add(host.nbytes());
  device.unsafeGetStorageImpl()->set_data_ptr_noswap(pointer_to(host, account, block->index, piece));
  device.unsafeGetStorageImpl()->set_nbytes(host.nbytes());
  account.check_limit(piece);
}

void resize_storage(const c10::Storage& device, size_t bytes) {
  at::native::resize_bytes_cpu(host_storage(device).unsafeGetStorageImpl(), bytes);
  follow_host(device);
}

bool is_sim(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == kDevice;
}

SIM_HOT bool is_plain(const at::Tensor& tensor) {
  return is_sim(tensor) && tensor.layout() == c10::kStrided && tensor.has_storage() &&
      tensor.scalar_type() != at::kHalf;
}

at::Tensor host_alias(const at::Tensor& tensor) {
  if (!is_sim(tensor)) {
    return tensor;
  }
  check_strided(tensor);
  return host_tensor(tensor, host_storage(tensor.storage()));
}

namespace {

using TensorPtr = c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

bool is_like(const c10::TensorImpl& alias, const at::Tensor& device) {
  return alias.dtype() == device.dtype() && alias.sizes() == device.sizes() && alias.strides() == device.strides() &&
      alias.storage_offset() == device.storage_offset() && alias.is_conj() == device.is_conj() &&
      alias.is_neg() == device.is_neg() &&
      alias.is_wrapped_number() == device.unsafeGetTensorImpl()->is_wrapped_number();
}

}  // namespace

SIM_HOT at::Tensor kept_alias(const at::Tensor& tensor) {
  Block* block = is_sim(tensor) && tensor.has_storage() ? block_of(tensor.storage()) : nullptr;
  for (size_t i = 0; block != nullptr && i < block->aliases.size(); ++i) {
    c10::TensorImpl* kept = block->aliases[i].load(std::memory_order_acquire);
    if (kept != nullptr && is_like(*kept, tensor)) {
      return at::Tensor(TensorPtr::reclaim_copy(kept));
    }
    if (kept == nullptr) {
      auto alias = host_alias(tensor);
      auto* made = TensorPtr(alias.getIntrusivePtr()).release();
      if (alias.is_inference() || !block->aliases[i].compare_exchange_strong(kept, made, std::memory_order_acq_rel)) {
        c10::raw::intrusive_ptr::decref(made);
      }
      return alias;
    }
  }
  return host_alias(tensor);
}

SIM_HOT at::Tensor adopt_result(at::Tensor host, c10::DeviceIndex index) {
  if (!host.defined()) {
    return host;
  }
  auto device = device_tensor(host, adopt(host.storage(), index));
  if (!host.is_inference()) {
    block_of(device.storage())->aliases[0].store(host.unsafeReleaseTensorImpl(), std::memory_order_release);
  }
  return device;
}

}  // namespace sim::memory
