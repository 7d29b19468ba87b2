// The profilers' interface to CUDA: events around each operator, whose work is done when it returns. There are no
// kernels to report.
//
// Contract held: torch/csrc/profiler/stubs/base.h. A CUDA build's own asks the driver at every operator, and prints its
// error each time.
#include "runtime/device.h"
#include "torch_versions.h"

#include <torch/csrc/profiler/stubs/base.h>

#include <chrono>
#include <functional>
#include <memory>

namespace sim::profiling {

namespace {

struct Profiling final : torch::profiler::impl::ProfilerStubs {
#if SIM_TORCH_AT_LEAST(2, 1)
  using Event = torch::profiler::impl::ProfilerVoidEventStub;
#else
  using Event = torch::profiler::impl::ProfilerEventStub;
#endif

  // The device is an int until 2.2.
  void record(c10::DeviceIndex* device, Event* event, int64_t* cpu_ns) const {
    record_on(device, event, cpu_ns);
  }
  void record(int* device, Event* event, int64_t* cpu_ns) const {
    record_on(device, event, cpu_ns);
  }
  float elapsed(const Event* from, const Event* to) const override {
    const auto between = at(*to) - at(*from);
    return static_cast<float>(between) / 1000;  // microseconds
  }
  void mark(const char* /*name*/) const override {}
  void rangePush(const char* /*name*/) const override {}
  void rangePop() const override {}
  bool enabled() const override {
    return true;
  }
  void onEachDevice(std::function<void(int)> action) const override {
    for (c10::DeviceIndex index = 0; index < device_count(); ++index) {
      action(index);
    }
  }
  void synchronize() const override {}

 private:
  static int64_t at(const Event& event) {
    return *reinterpret_cast<const int64_t*>(event.get());
  }
  template <class Index>
  static void record_on(Index* device, Event* event, int64_t* cpu_ns) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    const int64_t nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
    if (device != nullptr) {
      *device = static_cast<Index>(current_device());
    }
    if (cpu_ns != nullptr) {
      *cpu_ns = nanoseconds;
    }
    const auto held = std::make_shared<int64_t>(nanoseconds);
    *event =
        Event(held, reinterpret_cast<Event::element_type*>(held.get()));  // of a type that only CUDA's runtime knows
  }
};

const bool profiling_registered = [] {
  static Profiling stubs;
  torch::profiler::impl::registerCUDAMethods(&stubs);
  return true;
}();

}  // namespace

}  // namespace sim::profiling
