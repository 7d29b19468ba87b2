// Memory and copies: the host's.
#include "runtime.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace cuda_stub {

namespace {

struct Block {
  size_t bytes;
  int device;
  cudaMemoryType type;
};

std::mutex mutex;
size_t allocated[kDevices] = {};

std::map<const char*, Block>& blocks() {
  static auto* made = new std::map<const char*, Block>;  // outlives PyTorch's own statics, which free memory at exit
  return *made;
}

// Filled with zeros, so memory that a kernel should have written is the same in every run.
cudaError_t allocate(void** place, size_t bytes, cudaMemoryType type) {
  const size_t whole = (bytes / kAlignment + 1) * kAlignment;
  const std::lock_guard<std::mutex> guard(mutex);
  if (bytes > kMemory || allocated[current_device()] + whole > kMemory ||
      posix_memalign(place, kAlignment, whole) != 0) {
    return fail(cudaErrorMemoryAllocation);
  }
  std::memset(*place, 0, whole);
  allocated[current_device()] += whole;
  blocks()[static_cast<char*>(*place)] = {whole, current_device(), type};
  return cudaSuccess;
}

cudaError_t release(void* place) {
  {
    const std::lock_guard<std::mutex> guard(mutex);
    const auto block = blocks().find(static_cast<char*>(place));
    if (block == blocks().end()) {  // a null pointer, or not allocated here
      return cudaSuccess;
    }
    allocated[block->second.device] -= block->second.bytes;
    blocks().erase(block);
  }
  std::free(place);
  return cudaSuccess;
}

cudaError_t copy(void* to, const void* from, size_t bytes) {
  std::memmove(to, from, bytes);
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** place, size_t bytes) {
  return allocate(place, bytes, cudaMemoryTypeDevice);
}
cudaError_t cudaHostAlloc(void** place, size_t bytes, unsigned /*flags*/) {
  return allocate(place, bytes, cudaMemoryTypeHost);
}
cudaError_t cudaMallocHost(void** place, size_t bytes) {
  return allocate(place, bytes, cudaMemoryTypeHost);
}
cudaError_t cudaFree(void* place) {
  return release(place);
}
cudaError_t cudaFreeHost(void* place) {
  return release(place);
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const std::lock_guard<std::mutex> guard(mutex);
  *total = kMemory;
  *free = kMemory - allocated[current_device()];
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  std::memset(attributes, 0, sizeof *attributes);
  attributes->device = -2;  // cudaInvalidDeviceId: memory not allocated here
  const auto* place = static_cast<const char*>(pointer);
  const std::lock_guard<std::mutex> guard(mutex);
  auto block = blocks().upper_bound(place);
  if (block == blocks().begin() || place >= (--block)->first + block->second.bytes) {
    return cudaSuccess;
  }
  attributes->type = block->second.type;
  attributes->device = block->second.device;
  attributes->devicePointer = const_cast<void*>(pointer);
  attributes->hostPointer = block->second.type == cudaMemoryTypeHost ? const_cast<void*>(pointer) : nullptr;
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind /*kind*/) {
  return copy(to, from, bytes);
}
cudaError_t cudaMemcpyAsync(
    void* to, const void* from, size_t bytes, cudaMemcpyKind /*kind*/, cudaStream_t /*stream*/) {
  return copy(to, from, bytes);
}
cudaError_t cudaMemcpyPeerAsync(
    void* to, int /*to*/, const void* from, int /*from*/, size_t bytes, cudaStream_t /*stream*/) {
  return copy(to, from, bytes);
}
cudaError_t cudaMemset(void* place, int value, size_t bytes) {
  std::memset(place, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* place, int value, size_t bytes, cudaStream_t /*stream*/) {
  return cudaMemset(place, value, bytes);
}

}  // extern "C"

}  // namespace cuda_stub
