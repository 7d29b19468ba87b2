// PyTorch's interface to CUDA. A CPU build has no implementation of it; in a CUDA build this one replaces CUDA's.
//
// Contract held: ATen/detail/CUDAHooksInterface.h. Its methods differ between versions; they are defined without
// `override`, in each form that a version declares, and each version overrides those it has. The interface has
// defaults for the methods that are missing here: not available. The hooks must be registered before `torch._C` is
// initialised, which keeps what it finds.
#include "graphs/capture.h"
#include "runtime/cuda_errors.h"
#include "runtime/cudnn.h"
#include "runtime/device.h"
#include "runtime/generator.h"
#include "runtime/pinned.h"
#include "torch_versions.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/Allocator.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace sim::hooks {

namespace {

thread_local bool offers_cudnn = false;

}  // namespace

CuDNNOffer::CuDNNOffer(bool offered) : before_(offers_cudnn) {
  offers_cudnn = offered;
}

CuDNNOffer::~CuDNNOffer() {
  offers_cudnn = before_;
}

bool CuDNNOffer::is_offered() {
  return offers_cudnn;
}

struct CUDAHooks : at::CUDAHooksInterface {
  explicit CUDAHooks(at::CUDAHooksArgs /*arguments*/) {}

  void init() const {}
  void initCUDA() const {}
  bool hasCUDA() const {
    return device_count() > 0;
  }
  bool hasCUDART() const {
    return true;
  }
  bool isBuilt() const {
    return true;
  }
  bool isAvailable() const {
    return device_count() > 0;
  }
  // The query itself must not initialise the device.
  bool hasPrimaryContext(SIM_HOOKS_INDEX /*index*/) const {
    return true;
  }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex index = -1) const {
    return default_generator(index);
  }
  const at::Generator& getDefaultCUDAGenerator(c10::DeviceIndex index = -1) const {
    return default_generator(index);
  }
  at::Generator getNewGenerator(c10::DeviceIndex index = -1) const {
    return make_generator(index);
  }

  at::Device getDeviceFromPtr(void* /*data*/) const {
    return {kDevice, sim::current_device()};
  }
  bool isPinnedPtr(const void* pointer) const {
    return is_pinned(pointer);
  }
  bool isPinnedPtr(void* pointer) const {  // in 2.0
    return is_pinned(pointer);
  }
  c10::Allocator* getPinnedMemoryAllocator() const {
    return pinned_allocator();
  }
  c10::Allocator* getCUDADeviceAllocator() const {
    return c10::GetAllocator(kDevice);
  }

  SIM_HOOKS_INDEX current_device() const {
    return sim::current_device();
  }
  int getNumGPUs() const {
    return device_count();
  }
  c10::DeviceIndex deviceCount() const {
    return device_count();
  }
  void setCurrentDevice(c10::DeviceIndex index) const {
    exchange_device(index);
  }
  c10::DeviceIndex getCurrentDevice() const {
    return sim::current_device();
  }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const {
    return exchange_device(index);
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const {
    return index < 0 ? static_cast<c10::DeviceIndex>(-1) : exchange_device(index);
  }
  void deviceSynchronize(SIM_HOOKS_INDEX /*index*/) const {
    check_context();
    refuse_in_capture();
  }

  // A program may prefer it; the CPU's library computes.
  bool hasCuSOLVER() const {
    return true;
  }
  // Plans for Fourier transforms: none is made, and the limit that a program sets for a device is kept.
  int64_t cuFFTGetPlanCacheMaxSize(SIM_HOOKS_INDEX index) const {
    const std::lock_guard<std::mutex> lock(plans_mutex_);
    const auto found = most_plans_.find(index);
    return found == most_plans_.end() ? kMostPlans : found->second;
  }
  void cuFFTSetPlanCacheMaxSize(SIM_HOOKS_INDEX index, int64_t most) const {
    const std::lock_guard<std::mutex> lock(plans_mutex_);
    most_plans_[index] = most;
  }
  int64_t cuFFTGetPlanCacheSize(SIM_HOOKS_INDEX /*index*/) const {
    return 0;
  }
  void cuFFTClearPlanCache(SIM_HOOKS_INDEX /*index*/) const {}

  bool compiledWithCuDNN() const {
    return CuDNNOffer::is_offered();
  }
  // From cuDNN 9.13 on (CUDAHooks.cpp), on GPUs that have bfloat16.
  bool supportsBFloat16RNNWithCuDNN() const {
    return kCuDNNVersion >= 91300;
  }
  long versionCuDNN() const {
    return kCuDNNVersion;
  }
  long versionRuntimeCuDNN() const {
    return kCuDNNVersion;
  }

  std::string showConfig() const {
    return "  - simulated CUDA devices in host memory\n";
  }
  long versionCUDART() const {
    return 12080;
  }

 private:
  static constexpr int64_t kMostPlans = 4096;  // CUFFT_DEFAULT_CACHE_SIZE of ATen/native/cuda/CuFFTPlanCache.h
  mutable std::mutex plans_mutex_;
  mutable std::map<int64_t, int64_t> most_plans_;
};

namespace {

const bool cuda_hooks_registered = [] {
  const auto make = [](at::CUDAHooksArgs arguments) -> std::unique_ptr<at::CUDAHooksInterface> {
    return std::make_unique<CUDAHooks>(arguments);
  };
  at::CUDAHooksRegistry()->Register("CUDAHooks", make, c10::REGISTRY_PREFERRED);
  return true;
}();

}  // namespace

}  // namespace sim::hooks
