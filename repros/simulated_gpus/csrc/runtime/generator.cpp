// Random generators: a seed and an offset, from which CUDA's kernels draw (philox.h). What still runs on the host draws
// from a host generator that the device's owns, seeded anew for each operator.
//
// Contract held: ATen/core/Generator.h, check_generator: a generator of another device type is refused, in CUDA's
// words.
#include "runtime/generator.h"

#include "graphs/capture.h"
#include "runtime/cuda_errors.h"
#include "runtime/device.h"
#include "torch_versions.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Utils.h>

#include <ATen/ops/empty.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace sim::generator {

bool draws_from_cpu() {
  static const bool asked = [] {
    const char* text = std::getenv("REPROS_SIM_RANDOM");
    return text != nullptr && std::string(text) == "cpu";
  }();
  return asked;
}

namespace {

// Contract held: ATen/cuda/CUDAGeneratorImpl.cpp. The state is 16 bytes, seed and offset, and determines all that is
// drawn. A program may set the offset (DTensor does).
struct GeneratorImpl final : c10::GeneratorImpl {
  GeneratorImpl(c10::DeviceIndex index, at::Generator host)
      : c10::GeneratorImpl(c10::Device(kDevice, index), c10::DispatchKeySet(c10::DispatchKey::CUDA)),
        host_(std::move(host)) {}

  void set_current_seed(uint64_t seed) override {
    refuse_generator_in_capture("Cannot call CUDAGeneratorImpl::set_current_seed");
    go_to({seed, 0});
  }
  uint64_t current_seed() const override {
    return place_.seed;
  }
  uint64_t seed() override {
    refuse_generator_in_capture("Cannot call CUDAGeneratorImpl::seed");
    go_to({c10::detail::getNonDeterministicRandom(/*is_cuda=*/true), 0});
    return place_.seed;
  }
  void set_state(const c10::TensorImpl& state) override {
    refuse_generator_in_capture(
        "Please ensure to utilize the CUDAGeneratorImpl::set_state_index method during capturing.");
    at::detail::check_rng_state(state);
    uint64_t values[2] = {0, 0};
    const auto bytes = static_cast<size_t>(state.numel());
    TORCH_CHECK(bytes == sizeof(values) || bytes == sizeof(values[0]), "RNG state is wrong size");
    std::memcpy(values, state.data(), bytes);
    go_to({values[0], values[1]});
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    const uint64_t values[2] = {place_.seed, place_.offset};
    auto state = at::empty({static_cast<int64_t>(sizeof(values))}, at::TensorOptions(at::kByte));
    std::memcpy(state.data_ptr(), values, sizeof(values));
    return state.getIntrusivePtr();
  }
  // Virtual from 2.1.
  void set_offset(uint64_t offset) {
    go_to({place_.seed, offset});
  }
  uint64_t get_offset() const {
    return place_.offset;
  }

  Philox draw(uint64_t increment) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto place = place_;
    place_.offset += (increment + 3) / 4 * 4;
    return place;
  }
  // The host's generator for one operator. Its seed is spread over 64 bits, so that near offsets get distant ones.
  const at::Generator& draw_on_host() {
    const auto place = draw(4);
    if (!draws_from_cpu()) {
      constexpr uint64_t kSpread = 0x9E3779B97F4A7C15;  // 2^64 over the golden ratio
      host_.set_current_seed(place.seed ^ (place.offset * kSpread));
    }
    return host_;
  }
  const at::Generator& host() const {
    return host_;
  }

 private:
  void go_to(const Philox& place) {
    TORCH_CHECK(place.offset % 4 == 0, "offset must be a multiple of 4");
    if (draws_from_cpu()) {
      host_.set_current_seed(place.seed + place.offset);
    }
    place_ = place;
  }
  GeneratorImpl* clone_impl() const override {
    auto* copy = new GeneratorImpl(device().index(), host_.clone());
    copy->place_ = place_;
    return copy;
  }

  Philox place_;
  at::Generator host_;
};

}  // namespace

// Without an index it has none, as CUDA's: `torch.Generator("cuda").device` is "cuda".
at::Generator make_generator(c10::DeviceIndex index) {
  return at::make_generator<GeneratorImpl>(index, at::make_generator<at::CPUGeneratorImpl>(c10::default_rng_seed_val));
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
  if (real >= device_count()) {
    throw_cuda_error(kInvalidDevice);
  }
  return generators->at(static_cast<size_t>(real));
}

at::Generator device_generator(const SIM_OPTIONAL<at::Generator>& given, c10::DeviceIndex index) {
  const at::Generator& used = given.has_value() && given->defined() ? *given : default_generator(index);
  TORCH_CHECK(
      used.device().type() == kDevice, "Expected a 'cuda' device type for generator but found '", used.device().type(),
      "'");
  return used;
}

Philox draw_philox(const at::Generator& generator, uint64_t increment) {
  return static_cast<GeneratorImpl*>(generator.unsafeGetGeneratorImpl())->draw(increment);
}

const at::Generator& cpu_source(const at::Generator& generator) {
  const bool is_default = generator == default_generator(generator.device().index());
  return is_default ? at::detail::getDefaultCPUGenerator()
                    : static_cast<GeneratorImpl*>(generator.unsafeGetGeneratorImpl())->host();
}

at::Generator host_generator(const SIM_OPTIONAL<at::Generator>& given, c10::DeviceIndex index) {
  const auto used = device_generator(given, index);
  if (draws_from_cpu() && used == default_generator(index)) {
    return cpu_source(used);
  }
  return static_cast<GeneratorImpl*>(used.unsafeGetGeneratorImpl())->draw_on_host();
}

}  // namespace sim::generator
