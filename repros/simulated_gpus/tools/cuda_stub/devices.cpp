// Devices, their properties, and the last error.
#include "runtime.h"

#include <cstdio>
#include <cstring>

namespace cuda_stub {

namespace {

constexpr int kRegisters = 65536;

thread_local int current = 0;
thread_local cudaError_t last = cudaSuccess;

}  // namespace

int current_device() {
  return current;
}

cudaError_t fail(cudaError_t error) {
  return last = error;
}

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = kDevices;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= kDevices) {
    return fail(cudaErrorInvalidDevice);
  }
  current = device;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int /*device*/) {
  std::memset(properties, 0, sizeof *properties);
  std::strcpy(properties->name, "CUDA stub");
  properties->major = 8;
  properties->totalGlobalMem = kMemory;
  properties->multiProcessorCount = 4;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = kThreads;
  properties->maxThreadsPerMultiProcessor = 2 * kThreads;
  properties->sharedMemPerBlock = 48 << 10;
  properties->sharedMemPerBlockOptin = kShared;
  properties->sharedMemPerMultiprocessor = kShared;
  properties->regsPerBlock = kRegisters;
  properties->regsPerMultiprocessor = kRegisters;
  properties->textureAlignment = kAlignment;
  const int threads[] = {kThreads, kThreads, 64};
  const int blocks_of_grid[] = {2147483647, 65535, 65535};
  for (int i = 0; i < 3; ++i) {
    properties->maxThreadsDim[i] = threads[i];
    properties->maxGridSize[i] = blocks_of_grid[i];
  }
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp of;
  cudaGetDeviceProperties(&of, device);
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
      *value = of.major;
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = of.multiProcessorCount;
      break;
    case cudaDevAttrMaxThreadsPerBlock:
      *value = of.maxThreadsPerBlock;
      break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = of.maxThreadsPerMultiProcessor;
      break;
    case cudaDevAttrWarpSize:
      *value = of.warpSize;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = 48 << 10;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = kShared;
      break;
    case cudaDevAttrMaxRegistersPerBlock:
      *value = kRegisters;
      break;
    case cudaDevAttrMaxGridDimX:
      *value = of.maxGridSize[0];
      break;
    case cudaDevAttrMaxGridDimY:
      *value = of.maxGridSize[1];
      break;
    case cudaDevAttrMaxGridDimZ:
      *value = of.maxGridSize[2];
      break;
    default:
      *value = 0;
  }
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* id, int bytes, int device) {
  std::snprintf(id, static_cast<size_t>(bytes), "0000:%02d:00.0", device);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int /*device*/, int /*peer*/) {
  *can = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int /*peer*/, unsigned /*flags*/) {
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  const auto error = last;
  last = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() {
  return last;
}

}  // extern "C"

}  // namespace cuda_stub
