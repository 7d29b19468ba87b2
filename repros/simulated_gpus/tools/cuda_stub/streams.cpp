// Streams and events, whose work is done when a call returns, and kernels, which never run.
#include "runtime.h"

#include <cstdlib>
#include <cstring>

namespace cuda_stub {

namespace {

template <class Handle>
cudaError_t make(Handle* handle) {
  *handle = reinterpret_cast<Handle>(std::malloc(1));
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return make(stream);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned /*flags*/) {
  return make(stream);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned /*flags*/, int /*priority*/) {
  return make(stream);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  std::free(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t /*stream*/) {
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t /*stream*/) {
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t /*stream*/, cudaEvent_t /*event*/, unsigned /*flags*/) {
  return cudaSuccess;
}
cudaError_t cudaStreamGetPriority(cudaStream_t /*stream*/, int* priority) {
  *priority = 0;
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t /*stream*/, cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* /*mode*/) {
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return make(event);
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned /*flags*/) {
  return make(event);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  std::free(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t /*event*/, cudaStream_t /*stream*/) {
  return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t /*event*/, cudaStream_t /*stream*/, unsigned /*flags*/) {
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t /*event*/) {
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t /*event*/) {
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t /*begin*/, cudaEvent_t /*end*/) {
  *milliseconds = 0;
  return cudaSuccess;
}

// Kernels: a launch succeeds and does nothing.

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* /*kernel*/) {
  std::memset(attributes, 0, sizeof *attributes);
  attributes->maxThreadsPerBlock = kThreads;
  attributes->numRegs = 32;
  attributes->ptxVersion = attributes->binaryVersion = 80;
  attributes->maxDynamicSharedSizeBytes = kShared;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void* /*kernel*/, cudaFuncAttribute /*attribute*/, int /*value*/) {
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(
    int* blocks, const void* /*kernel*/, int /*threads*/, size_t /*shared*/) {
  *blocks = 2;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void* /*kernel*/, int /*threads*/, size_t /*shared*/, unsigned /*flags*/) {
  *blocks = 2;
  return cudaSuccess;
}
cudaError_t cudaMemcpyToSymbol(
    const void* /*to*/, const void* /*from*/, size_t /*bytes*/, size_t /*offset*/, cudaMemcpyKind /*kind*/) {
  return cudaSuccess;
}
cudaError_t cudaLaunchKernel(
    const void* /*kernel*/, dim3 /*grid*/, dim3 /*block*/, void** /*arguments*/, size_t /*shared*/,
    cudaStream_t /*stream*/) {
  return cudaSuccess;
}
// Compiled code calls this first at `kernel<<<grid, block>>>(...)`, and skips the launch unless it returns 0.
unsigned __cudaPushCallConfiguration(dim3 /*grid*/, dim3 /*block*/, size_t /*shared*/, void* /*stream*/) {
  return 1;
}
#if CUDART_VERSION >= 11080
cudaError_t cudaLaunchKernelExC(
    const cudaLaunchConfig_t* /*configuration*/, const void* /*kernel*/, void** /*arguments*/) {
  return cudaSuccess;
}
#endif

}  // extern "C"

}  // namespace cuda_stub
