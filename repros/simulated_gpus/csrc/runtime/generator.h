// Random generators of the devices.
#pragma once

#include "torch_versions.h"

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

#include <cstdint>

namespace sim::generator {

const at::Generator& default_generator(c10::DeviceIndex index);
at::Generator make_generator(c10::DeviceIndex index);
// Whether the devices draw the CPU's numbers: `REPROS_SIM_RANDOM=cpu`, for programs whose losses are compared with
// those of a run without GPUs.
bool draws_from_cpu();
// The host generator from which a device's generator draws in that case.
const at::Generator& cpu_source(const at::Generator& generator);
// `given`, or the default generator of `index`; a generator of another device type is refused.
at::Generator device_generator(const SIM_OPTIONAL<at::Generator>& given, c10::DeviceIndex index);

// A position in a generator's sequence: the seed, and how many numbers each thread of CUDA's kernels has drawn.
struct Philox {
  uint64_t seed = c10::default_rng_seed_val;
  uint64_t offset = 0;
};
// Returns the position at which a kernel draws `increment` numbers in each thread, and advances the generator by that,
// rounded up to a multiple of four.
Philox draw_philox(const at::Generator& generator, uint64_t increment);
// The host generator of a device's generator, for one operator that runs on the host.
at::Generator host_generator(const SIM_OPTIONAL<at::Generator>& given, c10::DeviceIndex index);

}  // namespace sim::generator

namespace sim {

using generator::cpu_source, generator::default_generator, generator::device_generator, generator::draw_philox,
    generator::draws_from_cpu, generator::host_generator, generator::make_generator, generator::Philox;

}  // namespace sim
