// The CUDA runtime of the stub: memory and copies are the host's, kernels do nothing.
//
// It is loaded before `libcudart`, so PyTorch finds these definitions first. Other functions are the real library's,
// which fail without a driver. It is compiled against the header of the CUDA release that PyTorch was built for,
// because `cudaDeviceProp` changes between releases. It also has the driver's name: PyTorch opens `libcuda.so.1`.
#pragma once

#include <cuda_runtime_api.h>

namespace cuda_stub {

constexpr int kDevices = 2;
constexpr size_t kMemory =
    size_t{1} << 30;                // bytes of each; a size that a kernel should have computed may be any number
constexpr size_t kAlignment = 512;  // bytes, of a block of memory
constexpr int kThreads = 1024;      // threads of a block
constexpr int kShared = 160 << 10;  // bytes of a multiprocessor, as on compute capability 8.0

// The calling thread's device.
int current_device();
// Keeps an error for cudaGetLastError, and returns it.
cudaError_t fail(cudaError_t error);

}  // namespace cuda_stub
