// Devices, streams and events.
//
// Contract held: c10/core/impl/DeviceGuardImplInterface.h. The current device is a property of the thread, as CUDA's
// is. Work on a simulated device is done when the call returns, so every stream is always idle and every event has
// happened.
#include "runtime/device.h"

#include "runtime/cuda_errors.h"
#include "runtime/sync.h"

#include <c10/core/Stream.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <pthread.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>

namespace sim::device {

namespace {

constexpr int kMostDevices = 64;
constexpr int kDefaultDevices = 2;

void (*require_initialization)() = nullptr;

thread_local c10::DeviceIndex current = 0;
thread_local std::array<c10::StreamId, kMostDevices> current_streams{};

using Moment = std::chrono::steady_clock::time_point;

int requested_device_count() {
  const char* text = std::getenv("REPROS_SIM_DEVICES");
  if (text == nullptr || *text == '\0') {
    return kDefaultDevices;
  }
  char* end = nullptr;
  const long count = std::strtol(text, &end, 10);
  TORCH_CHECK(
      *end == '\0' && count >= 1 && count <= kMostDevices, "REPROS_SIM_DEVICES must be a number from 1 to ",
      kMostDevices, ", not '", text, "'");
  return static_cast<int>(count);
}

// CUDA's rule: the devices that are listed, up to the first that does not exist. All are alike, so their number is
// enough.
int visible_device_count() {
  const int all = requested_device_count();
  const char* list = std::getenv("CUDA_VISIBLE_DEVICES");
  if (list == nullptr) {
    return all;
  }
  int visible = 0;
  std::istringstream names(list);
  for (std::string name; std::getline(names, name, ',') && visible < all; ++visible) {
    char* end = nullptr;
    const long index = std::strtol(name.c_str(), &end, 10);
    if (end == name.c_str() || *end != '\0' || index < 0 || index >= all) {
      break;
    }
  }
  return visible;
}

}  // namespace

void poison_forks(void (*require)()) {
  if (std::exchange(require_initialization, require) == nullptr) {
    pthread_atfork(nullptr, nullptr, [] {
      exchange_context_error(kInitializationError);
      require_initialization();
    });
  }
}

c10::DeviceIndex device_count() {
  static const int count = visible_device_count();
  return static_cast<c10::DeviceIndex>(count);
}

c10::DeviceIndex current_device() {
  return current;
}

c10::DeviceIndex exchange_device(c10::DeviceIndex index) {
  if (index < 0 || index >= device_count()) {
    throw_cuda_error(kInvalidDevice);
  }
  return std::exchange(current, index);
}

c10::StreamId new_stream() {
  static std::atomic<c10::StreamId> last{0};
  return ++last;
}

c10::StreamId current_stream(c10::DeviceIndex index) {
  return current_streams[static_cast<size_t>(index)];
}

void set_stream(c10::DeviceIndex index, c10::StreamId id) {
  exchange_device(index);
  current_streams[static_cast<size_t>(index)] = id;
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override {
    return kDevice;
  }
  c10::Device exchangeDevice(c10::Device device) const override {
    return {kDevice, exchange_device(device.index())};
  }
  c10::Device getDevice() const override {
    return {kDevice, current};
  }
  void setDevice(c10::Device device) const override {
    exchange_device(device.index());
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    current = device.index();
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    return device_count();
  }

  c10::Stream getStream(c10::Device device) const noexcept override {
    return stream_of(device, current_stream(static_cast<c10::DeviceIndex>(index_of(device))));
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return stream_of(device, 0);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool /*high_priority*/ = false) const override {
    return getNewStream(device);
  }
  c10::Stream getNewStream(c10::Device device, int /*priority*/ = 0) const {
    return stream_of(device, new_stream());
  }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override {
    const auto before = std::exchange(current_streams[index_of(stream.device())], stream.id());
    return stream_of(stream.device(), before);
  }
  bool queryStream(const c10::Stream&) const override {
    return true;
  }
  void synchronizeStream(const c10::Stream&) const override {
    check_context();
    note_sync();
  }
  void synchronizeDevice(const c10::DeviceIndex) const {
    check_context();
  }

  void record(void** event, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {
    destroyEvent(*event, 0);
    *event = new Moment(std::chrono::steady_clock::now());
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override {
    return true;
  }
  void synchronizeEvent(void*) const {
    check_context();
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<Moment*>(event);
  }
  double elapsedTime(void* from, void* to, const c10::DeviceIndex) const {
    return std::chrono::duration<double, std::milli>(*static_cast<Moment*>(to) - *static_cast<Moment*>(from)).count();
  }

 private:
  static size_t index_of(c10::Device device) {
    return device.has_index() ? static_cast<size_t>(device.index()) : static_cast<size_t>(current);
  }
  static c10::Stream stream_of(c10::Device device, c10::StreamId id) {
    return c10::Stream(c10::Stream::UNSAFE, {kDevice, static_cast<c10::DeviceIndex>(index_of(device))}, id);
  }
};

namespace {
// A CUDA build has registered its own before.
const c10::impl::DeviceGuardImplRegistrar guard_registered(kDevice, new Guard);
}  // namespace

}  // namespace sim::device
