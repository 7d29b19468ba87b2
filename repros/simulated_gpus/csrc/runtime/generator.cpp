// Random generators: a device generator draws from a host generator that it owns.
//
// Contract held: ATen/core/Generator.h, check_generator: a generator of another device type is refused, in CUDA's
// words. The CPU kernel gets the owned generator itself, so there is no state to write back, and a simulated device
// draws the numbers that the CPU draws from the same seed.
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
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace sim {

namespace {

// A place in a generator's sequence, as CUDA's state has it: the seed, and how far it has drawn.
struct Place {
  uint64_t seed = c10::default_rng_seed_val;
  uint64_t offset = 0;

  bool operator<(const Place& other) const {
    return std::tie(seed, offset) < std::tie(other.seed, other.offset);
  }
};

// What the host's generator was at the places that somebody has asked for. The oldest are forgotten.
class Places {
 public:
  void remember(const Place& place, c10::intrusive_ptr<c10::TensorImpl> state) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (states_.insert_or_assign(place, std::move(state)).second) {
      order_.push_back(place);
    }
    if (order_.size() > kMost) {
      states_.erase(order_.front());
      order_.pop_front();
    }
  }
  c10::intrusive_ptr<c10::TensorImpl> find(const Place& place) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = states_.find(place);
    return found == states_.end() ? c10::intrusive_ptr<c10::TensorImpl>() : found->second;
  }

 private:
  static constexpr size_t kMost = 4096;  // some 20 MB
  std::mutex mutex_;
  std::map<Place, c10::intrusive_ptr<c10::TensorImpl>> states_;
  std::deque<Place> order_;
};

// A state, behind whose 16 bytes its storage holds what the host's generator was at this place: a mark, and the host's
// state. So a state that is saved, pickled or sent as a tensor is restored exactly in another process.
constexpr char kMark[8] = {'h', 'o', 's', 't', 'l', 'i', 'k', 'e'};
constexpr size_t kVisible = 2 * sizeof(uint64_t);

at::Tensor make_state(const Place& place, const c10::TensorImpl& host) {
  const auto bytes = static_cast<size_t>(host.numel());
  auto whole = at::empty({static_cast<int64_t>(kVisible + sizeof(kMark) + bytes)}, at::TensorOptions(at::kByte));
  auto* to = static_cast<char*>(whole.data_ptr());
  const uint64_t values[2] = {place.seed, place.offset};
  std::memcpy(to, values, kVisible);
  std::memcpy(to + kVisible, kMark, sizeof(kMark));
  std::memcpy(to + kVisible + sizeof(kMark), host.data(), bytes);
  return whole.narrow(0, 0, static_cast<int64_t>(kVisible));
}

// The host's state behind a state's visible bytes; null if there is none, as in a copy of these bytes.
c10::intrusive_ptr<c10::TensorImpl> hidden_state(const c10::TensorImpl& state) {
  const size_t begin = static_cast<size_t>(state.storage_offset()) + kVisible + sizeof(kMark);
  const size_t end = state.storage().nbytes();
  const auto* visible = static_cast<const char*>(state.data());
  if (end <= begin || std::memcmp(visible + kVisible, kMark, sizeof(kMark)) != 0) {
    return {};
  }
  auto host = at::empty({static_cast<int64_t>(end - begin)}, at::TensorOptions(at::kByte));
  std::memcpy(host.data_ptr(), visible + kVisible + sizeof(kMark), end - begin);
  return host.getIntrusivePtr();
}

// Never destroyed: generators outlive static objects when the interpreter ends.
Places& places() {
  static auto* const all = new Places;
  return *all;
}

}  // namespace

void learn_state(const c10::TensorImpl& state) {
  if (state.numel() != static_cast<int64_t>(kVisible)) {
    return;
  }
  if (auto host = hidden_state(state)) {
    uint64_t values[2];
    std::memcpy(values, state.data(), kVisible);
    places().remember({values[0], values[1]}, std::move(host));
  }
}

namespace {

// Contract held: ATen/cuda/CUDAGeneratorImpl.cpp. The state is 16 bytes, seed and offset, and a program may set the
// offset (DTensor does). The numbers are those of the host's generator of that seed. At a place that no state of this
// process or another tells, they are determined by seed and offset, but are not those that an uninterrupted run draws
// there.
struct GeneratorImpl final : c10::GeneratorImpl {
  GeneratorImpl(c10::DeviceIndex index, at::Generator host)
      : c10::GeneratorImpl(c10::Device(kDevice, index), c10::DispatchKeySet(c10::DispatchKey::CUDA)),
        host_(std::move(host)) {}

  void set_current_seed(uint64_t seed) override {
    refuse_generator_in_capture("Cannot call CUDAGeneratorImpl::set_current_seed");
    host_.set_current_seed(seed);
    place_ = {seed, 0};
  }
  uint64_t current_seed() const override {
    return place_.seed;
  }
  uint64_t seed() override {
    refuse_generator_in_capture("Cannot call CUDAGeneratorImpl::seed");
    place_ = {host_.seed(), 0};
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
    learn_state(state);
    go_to({values[0], values[1]});
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    const auto host = host_.unsafeGetGeneratorImpl()->get_state();
    places().remember(place_, host);
    return make_state(place_, *host).getIntrusivePtr();
  }
  // Virtual from 2.1.
  void set_offset(uint64_t offset) {
    go_to({place_.seed, offset});
  }
  uint64_t get_offset() const {
    return place_.offset;
  }

  // The host's generator for one operator. CUDA's counter advances by four for each number that a thread draws.
  const at::Generator& draw() {
    place_.offset += 4;
    return host_;
  }

 private:
  void go_to(const Place& place) {
    if (const auto state = places().find(place)) {
      host_.unsafeGetGeneratorImpl()->set_state(*state);
    } else {
      constexpr uint64_t kSpread = 0x9E3779B97F4A7C15;  // 2^64 over the golden ratio: near offsets get distant seeds
      host_.set_current_seed(place.seed ^ (place.offset * kSpread));
    }
    place_ = place;
  }
  GeneratorImpl* clone_impl() const override {
    auto* copy = new GeneratorImpl(device().index(), host_.clone());
    copy->place_ = place_;
    return copy;
  }

  Place place_;
  at::Generator host_;
};

}  // namespace

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
  if (real >= device_count()) {
    throw_cuda_error(kInvalidDevice);
  }
  return generators->at(static_cast<size_t>(real));
}

namespace {

// `REPROS_SIM_RANDOM=cpu`: for programs whose losses are compared with those of a run without GPUs.
bool draws_from_cpu() {
  static const bool asked = [] {
    const char* text = std::getenv("REPROS_SIM_RANDOM");
    return text != nullptr && std::string(text) == "cpu";
  }();
  return asked;
}

}  // namespace

at::Generator host_generator(const SIM_OPTIONAL<at::Generator>& given, c10::DeviceIndex index) {
  const at::Generator& used = given.has_value() && given->defined() ? *given : default_generator(index);
  TORCH_CHECK(
      used.device().type() == kDevice, "Expected a 'cuda' device type for generator but found '", used.device().type(),
      "'");
  if (draws_from_cpu() && used == default_generator(index)) {
    return at::detail::getDefaultCPUGenerator();
  }
  return static_cast<GeneratorImpl*>(used.unsafeGetGeneratorImpl())->draw();
}

}  // namespace sim
