// PyTorch's interface to a backend that is not compiled into it.
//
// Contract held: ATen/detail/PrivateUse1HooksInterface.h (from 2.1). Its methods differ between versions; they are defined
// without `override`, in each form that a version declares, and each version overrides those it has.
#include "sim.h"

#if SIM_HAS_HOOKS
#include <ATen/core/GeneratorForPrivateuseone.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>

#include <type_traits>

namespace sim {

struct Hooks final : at::PrivateUse1HooksInterface {
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) {
    return default_generator(index);
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const {
    return default_generator(index);
  }
  at::Generator getNewGenerator(c10::DeviceIndex index = -1) const {
    return make_generator(index);
  }
  at::Device getDeviceFromPtr(void* /*data*/) const {
    return {kDevice, current_device()};
  }
  bool isBuilt() const {
    return true;
  }
  bool isAvailable() const {
    return true;
  }
  bool hasPrimaryContext(c10::DeviceIndex /*index*/) const {
    return true;
  }
  void init() const {}
  void initPrivateUse1() const {}
  c10::DeviceIndex deviceCount() const {
    return device_count();
  }
  void setCurrentDevice(c10::DeviceIndex index) const {
    exchange_device(index);
  }
  c10::DeviceIndex getCurrentDevice() const {
    return current_device();
  }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const {
    return exchange_device(index);
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const {
    return exchange_device(index);
  }
  c10::Allocator* getPinnedMemoryAllocator() const {
    return pinned_allocator();
  }
  bool isPinnedPtr(const void* pointer) const {
    return is_pinned(pointer);
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const {
    resize_storage(storage, bytes);
  }
};

namespace {

// Versions that do not make generators through the interface use a function that is registered separately. PyTorch 2.6 has the
// method in a base class of the interface, but does not call it.
template <class Interface, class = void>
struct MakesGenerators : std::false_type {};
template <class Interface>
struct MakesGenerators<Interface, std::void_t<decltype(&Interface::getNewGenerator)>>
    : std::is_same<decltype(&Interface::getNewGenerator), at::Generator (Interface::*)(c10::DeviceIndex) const> {};

template <class Interface>
void register_generator_maker() {
  if constexpr (!MakesGenerators<Interface>::value) {
    static const at::_GeneratorRegister registered(make_generator);
  }
}

}  // namespace

void register_hooks() {
  static Hooks hooks;
  at::RegisterPrivateUse1HooksInterface(&hooks);
  register_generator_maker<at::PrivateUse1HooksInterface>();
}

}  // namespace sim

#elif !SIM_TAKES_CUDA

void sim::register_hooks() {}

#endif
