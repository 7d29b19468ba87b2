// The CUDA runtime of the hollow devices: memory and copies are real and the host's, kernels do nothing.
//
// Loaded before `libcudart`, so that PyTorch finds these definitions first; what is not defined here is the real library's, which
// fails for want of a driver. It is compiled against the header of the CUDA release that PyTorch was built for, since
// `cudaDeviceProp` changes with it. It goes by the driver's name, too: PyTorch opens `libcuda.so.1`.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace {

constexpr int kDevices = 2;
constexpr size_t kMemory = size_t{1} << 30;  // bytes of each: sizes that a kernel was to compute may be anything
constexpr size_t kAlignment = 512;           // of the runtime's blocks
constexpr int kThreads = 1024;               // of a block
constexpr int kShared = 160 << 10;           // bytes of a multiprocessor, as on compute capability 8.0
constexpr int kRegisters = 65536;

struct Block {
  size_t bytes;
  int device;
  cudaMemoryType type;
};

thread_local int current = 0;
thread_local cudaError_t last = cudaSuccess;
std::mutex guarding;

size_t held[kDevices] = {};

std::map<const char*, Block>& blocks() {
  static auto* made = new std::map<const char*, Block>;  // outlives PyTorch's own statics, which free memory at exit
  return *made;
}

cudaError_t fail(cudaError_t error) {
  return last = error;
}

// Zeros: what a kernel would have written is the same in every run.
cudaError_t allocate(void** place, size_t bytes, cudaMemoryType type) {
  const size_t whole = (bytes / kAlignment + 1) * kAlignment;
  const std::lock_guard<std::mutex> guard(guarding);
  if (bytes > kMemory || held[current] + whole > kMemory || posix_memalign(place, kAlignment, whole) != 0) {
    return fail(cudaErrorMemoryAllocation);
  }
  std::memset(*place, 0, whole);
  held[current] += whole;
  blocks()[static_cast<char*>(*place)] = {whole, current, type};
  return cudaSuccess;
}

cudaError_t release(void* place) {
  {
    const std::lock_guard<std::mutex> guard(guarding);
    const auto block = blocks().find(static_cast<char*>(place));
    if (block == blocks().end()) {  // nothing, or not the runtime's
      return cudaSuccess;
    }
    held[block->second.device] -= block->second.bytes;
    blocks().erase(block);
  }
  std::free(place);
  return cudaSuccess;
}

cudaError_t copy(void* to, const void* from, size_t bytes) {
  std::memmove(to, from, bytes);
  return cudaSuccess;
}

template <class Handle>
cudaError_t make(Handle* handle) {
  *handle = reinterpret_cast<Handle>(std::malloc(1));
  return cudaSuccess;
}

}  // namespace

extern "C" {

// Devices.

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
  std::strcpy(properties->name, "hollow");
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
    case cudaDevAttrComputeCapabilityMajor: *value = of.major; break;
    case cudaDevAttrMultiProcessorCount: *value = of.multiProcessorCount; break;
    case cudaDevAttrMaxThreadsPerBlock: *value = of.maxThreadsPerBlock; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = of.maxThreadsPerMultiProcessor; break;
    case cudaDevAttrWarpSize: *value = of.warpSize; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = 48 << 10; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = kShared; break;
    case cudaDevAttrMaxRegistersPerBlock: *value = kRegisters; break;
    case cudaDevAttrMaxGridDimX: *value = of.maxGridSize[0]; break;
    case cudaDevAttrMaxGridDimY: *value = of.maxGridSize[1]; break;
    case cudaDevAttrMaxGridDimZ: *value = of.maxGridSize[2]; break;
    default: *value = 0;
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

// Memory.

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
  const std::lock_guard<std::mutex> guard(guarding);
  *total = kMemory;
  *free = kMemory - held[current];
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  std::memset(attributes, 0, sizeof *attributes);
  attributes->device = -2;  // cudaInvalidDeviceId: of memory that the runtime does not know
  const auto* place = static_cast<const char*>(pointer);
  const std::lock_guard<std::mutex> guard(guarding);
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
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind /*kind*/, cudaStream_t /*stream*/) {
  return copy(to, from, bytes);
}
cudaError_t cudaMemcpyPeerAsync(void* to, int /*to*/, const void* from, int /*from*/, size_t bytes, cudaStream_t /*stream*/) {
  return copy(to, from, bytes);
}
cudaError_t cudaMemset(void* place, int value, size_t bytes) {
  std::memset(place, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* place, int value, size_t bytes, cudaStream_t /*stream*/) {
  return cudaMemset(place, value, bytes);
}

// Streams and events: all work is done when a call returns.

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

// Kernels: a launch that nothing comes of.

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
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* /*kernel*/, int /*threads*/, size_t /*shared*/) {
  *blocks = 2;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void* /*kernel*/, int /*threads*/, size_t /*shared*/, unsigned /*flags*/) {
  *blocks = 2;
  return cudaSuccess;
}
cudaError_t cudaMemcpyToSymbol(const void* /*to*/, const void* /*from*/, size_t /*bytes*/, size_t /*offset*/, cudaMemcpyKind /*kind*/) {
  return cudaSuccess;
}
cudaError_t cudaLaunchKernel(
    const void* /*kernel*/, dim3 /*grid*/, dim3 /*block*/, void** /*arguments*/, size_t /*shared*/, cudaStream_t /*stream*/) {
  return cudaSuccess;
}
// Compiled code asks this first at `kernel<<<grid, block>>>(...)`, and leaves the launch out unless it gives 0.
unsigned __cudaPushCallConfiguration(dim3 /*grid*/, dim3 /*block*/, size_t /*shared*/, void* /*stream*/) {
  return 1;
}
#if CUDART_VERSION >= 11080
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* /*configuration*/, const void* /*kernel*/, void** /*arguments*/) {
  return cudaSuccess;
}
#endif

// The libraries of mathematics would ask a driver. cuBLAS succeeds at nothing, so that products can be seen; of cuDNN there is only a
// handle, since what its checks refuse is refused before anything is computed.

#define DOES_NOTHING(name) \
  int name(...) { return 0; }

int cublasCreate_v2(void** handle) {
  *handle = std::malloc(1);
  return 0;
}
int cublasLtCreate(void** handle) {
  return cublasCreate_v2(handle);
}
int cublasGetMathMode(void* /*handle*/, int* mode) {
  *mode = 0;
  return 0;
}
int cublasGetPointerMode_v2(void* /*handle*/, int* mode) {
  *mode = 0;
  return 0;
}
int cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*, void*, int /*wanted*/, void* /*found*/, int* count) {
  *count = 1;
  return 0;
}
DOES_NOTHING(cublasDestroy_v2)
DOES_NOTHING(cublasSetStream_v2)
DOES_NOTHING(cublasSetWorkspace_v2)
DOES_NOTHING(cublasSetMathMode)
DOES_NOTHING(cublasSetPointerMode_v2)
DOES_NOTHING(cublasSgemm_v2)
DOES_NOTHING(cublasDgemm_v2)
DOES_NOTHING(cublasSgemmEx)
DOES_NOTHING(cublasGemmEx)
DOES_NOTHING(cublasSgemv_v2)
DOES_NOTHING(cublasDgemv_v2)
DOES_NOTHING(cublasSdot_v2)
DOES_NOTHING(cublasDdot_v2)
DOES_NOTHING(cublasDotEx)
DOES_NOTHING(cublasSgemmStridedBatched)
DOES_NOTHING(cublasDgemmStridedBatched)
DOES_NOTHING(cublasGemmStridedBatchedEx)
DOES_NOTHING(cublasGemmBatchedEx)
DOES_NOTHING(cublasStrsm_v2)
DOES_NOTHING(cublasDtrsm_v2)
DOES_NOTHING(cublasStrsmBatched)
DOES_NOTHING(cublasDtrsmBatched)
DOES_NOTHING(cublasSgetrfBatched)
DOES_NOTHING(cublasSgetrsBatched)
DOES_NOTHING(cublasSgeqrfBatched)
DOES_NOTHING(cublasSgelsBatched)
DOES_NOTHING(cublasLtMatmul)
DOES_NOTHING(cublasLtMatmulDescCreate)
DOES_NOTHING(cublasLtMatmulDescDestroy)
DOES_NOTHING(cublasLtMatmulDescSetAttribute)
DOES_NOTHING(cublasLtMatrixLayoutCreate)
DOES_NOTHING(cublasLtMatrixLayoutDestroy)
DOES_NOTHING(cublasLtMatrixLayoutSetAttribute)
DOES_NOTHING(cublasLtMatmulPreferenceCreate)
DOES_NOTHING(cublasLtMatmulPreferenceDestroy)
DOES_NOTHING(cublasLtMatmulPreferenceSetAttribute)
int cudnnCreate(void** handle) {
  *handle = std::calloc(1, 1 << 20);  // cuDNN's own functions look into it
  return 0;
}
DOES_NOTHING(cudnnDestroy)
DOES_NOTHING(cudnnSetStream)

// The driver and its management library, as far as PyTorch looks their functions up by name.

DOES_NOTHING(cuCtxGetCurrent)
DOES_NOTHING(cuCtxSetCurrent)
DOES_NOTHING(cuDeviceGetAttribute)
DOES_NOTHING(cuDevicePrimaryCtxGetState)
DOES_NOTHING(cuDevicePrimaryCtxRetain)
DOES_NOTHING(cuGetErrorString)
DOES_NOTHING(cuMemAddressFree)
DOES_NOTHING(cuMemAddressReserve)
DOES_NOTHING(cuMemCreate)
DOES_NOTHING(cuMemExportToShareableHandle)
DOES_NOTHING(cuMemGetAllocationGranularity)
DOES_NOTHING(cuMemImportFromShareableHandle)
DOES_NOTHING(cuMemMap)
DOES_NOTHING(cuMemRelease)
DOES_NOTHING(cuMemSetAccess)
DOES_NOTHING(cuMemUnmap)
DOES_NOTHING(cuStreamWriteValue32)
DOES_NOTHING(nvmlDeviceGetComputeRunningProcesses)
DOES_NOTHING(nvmlDeviceGetHandleByPciBusId_v2)
DOES_NOTHING(nvmlDeviceGetNvLinkRemoteDeviceType)
DOES_NOTHING(nvmlDeviceGetNvLinkRemotePciInfo_v2)
DOES_NOTHING(nvmlInit_v2)
DOES_NOTHING(hollow_driver_function)
#if CUDART_VERSION >= 12050
cudaError_t cudaGetDriverEntryPointByVersion(
    const char* /*name*/, void** function, unsigned /*version*/, unsigned long long /*flags*/, cudaDriverEntryPointQueryResult* found) {
  *function = reinterpret_cast<void*>(&hollow_driver_function);
  if (found != nullptr) {
    *found = cudaDriverEntryPointSuccess;
  }
  return cudaSuccess;
}
#endif
}
