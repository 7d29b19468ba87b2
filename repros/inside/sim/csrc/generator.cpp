// Random generators: a device generator draws from a host generator that it owns.
//
// Contract held: ATen/core/Generator.h, check_generator: a generator of another device type is refused, in CUDA's words.
// The CPU kernel gets the owned generator itself, so there is no state to write back, and a simulated device draws the
// numbers that the CPU draws from the same seed.
#include "sim.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Utils.h>
#if SIM_HAS_HOOKS
#include <ATen/core/GeneratorForPrivateuseone.h>
#endif

#include <vector>

namespace sim {

struct GeneratorImpl final : c10::GeneratorImpl {
  GeneratorImpl(c10::DeviceIndex index, at::Generator host)
      : c10::GeneratorImpl(c10::Device(kDevice, index), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        host(std::move(host)) {}

  void set_current_seed(uint64_t seed) override {
    host.set_current_seed(seed);
  }
  uint64_t current_seed() const override {
    return host.current_seed();
  }
  uint64_t seed() override {
    return host.seed();
  }
  void set_state(const c10::TensorImpl& state) override {
    host.unsafeGetGeneratorImpl()->set_state(state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return host.unsafeGetGeneratorImpl()->get_state();
  }
  // From 2.1. CUDA's Philox generator counts its draws; the Mersenne twister underneath does not.
  void set_offset(uint64_t /*offset*/) {
    TORCH_CHECK(false, "a generator of the simulated accelerator has no offset");
  }
  uint64_t get_offset() const {
    TORCH_CHECK(false, "a generator of the simulated accelerator has no offset");
  }

  at::Generator host;

 private:
  GeneratorImpl* clone_impl() const override {
    return new GeneratorImpl(device().index(), host.clone());
  }
};

at::Generator make_generator(c10::DeviceIndex index) {
  const auto real = index < 0 ? current_device() : index;
  return at::make_generator<GeneratorImpl>(real, at::make_generator<at::CPUGeneratorImpl>(c10::default_rng_seed_val));
}

const at::Generator& default_generator(c10::DeviceIndex index) {
  static auto* const generators = [] {
    auto* all = new std::vector<at::Generator>;
    for (c10::DeviceIndex each = 0; each < device_count(); ++each) {
      all->push_back(make_generator(each));
    }
    return all;
  }();
  const auto real = index < 0 ? current_device() : index;
  TORCH_CHECK(real < device_count(), "sim error: invalid device ordinal ", static_cast<int>(real));
  return generators->at(static_cast<size_t>(real));
}

at::Generator host_generator(const SIM_OPTIONAL<at::Generator>& given, c10::DeviceIndex index) {
  const at::Generator& used = given.has_value() && given->defined() ? *given : default_generator(index);
  TORCH_CHECK(
      used.device().type() == kDevice, "Expected a 'sim' device type for generator but found '", used.device().type(), "'");
  return static_cast<GeneratorImpl*>(used.unsafeGetGeneratorImpl())->host;
}

}  // namespace sim
