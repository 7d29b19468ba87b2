// The functions of the math libraries and the driver that PyTorch calls before it computes.
#include "runtime.h"

#include <cstdlib>

extern "C" {

// The real math libraries would need a driver. cuBLAS's functions succeed and do nothing, so products can be observed.
// Of cuDNN only the handle is defined, because its checks come before any computation.

#define DOES_NOTHING(name) \
  int name(...) {          \
    return 0;              \
  }

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
int cublasLtMatmulAlgoGetHeuristic(
    void*, void*, void*, void*, void*, void*, void*, int /*wanted*/, void* /*found*/, int* count) {
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
  *handle = std::calloc(1, 1 << 20);  // cuDNN's own functions read it
  return 0;
}
DOES_NOTHING(cudnnDestroy)
DOES_NOTHING(cudnnSetStream)

// Functions of the driver and its management library that PyTorch looks up by name.

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
DOES_NOTHING(stub_driver_function)
#if CUDART_VERSION >= 12050
cudaError_t cudaGetDriverEntryPointByVersion(
    const char* /*name*/, void** function, unsigned /*version*/, unsigned long long /*flags*/,
    cudaDriverEntryPointQueryResult* found) {
  *function = reinterpret_cast<void*>(&stub_driver_function);
  if (found != nullptr) {
    *found = cudaDriverEntryPointSuccess;
  }
  return cudaSuccess;
}
#endif

}  // extern "C"
