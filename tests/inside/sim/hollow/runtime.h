// The CUDA runtime of the hollow devices: memory and copies are real and the host's, kernels do nothing.
//
// Loaded before `libcudart`, so that PyTorch finds these definitions first; what is not defined here is the real library's, which
// fails for want of a driver. It is compiled against the header of the CUDA release that PyTorch was built for, since
// `cudaDeviceProp` changes with it. It goes by the driver's name, too: PyTorch opens `libcuda.so.1`.
#pragma once

#include <cuda_runtime_api.h>

namespace hollow {

constexpr int kDevices = 2;
constexpr size_t kMemory = size_t{1} << 30;  // bytes of each: sizes that a kernel was to compute may be anything
constexpr size_t kAlignment = 512;           // of the runtime's blocks
constexpr int kThreads = 1024;               // of a block
constexpr int kShared = 160 << 10;           // bytes of a multiprocessor, as on compute capability 8.0

// The calling thread's device.
int current_device();
// Keeps an error for cudaGetLastError, and returns it.
cudaError_t fail(cudaError_t error);

}  // namespace hollow
