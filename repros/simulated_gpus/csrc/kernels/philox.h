// Random bits as CUDA's kernels draw them: Philox 4x32-10, one sequence for each thread of a launch.
//
// Contracts held: curand_philox4x32_x.h (the rounds), curand_kernel.h (`curand_init`: a thread's number is the upper
// half of its counter, a generator's offset in fours the lower half) and ATen/native/cuda/DistributionTemplates.h
// (`calc_execution_policy`, `distribution_elementwise_grid_stride_kernel`).
#pragma once

#include "runtime/generator.h"
#include "torch_versions.h"

#include <ATen/Parallel.h>
#include <ATen/native/TensorIterator.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace sim::philox {

// The number of threads whose numbers are computed together.
constexpr int kBatch = 32;
// Their numbers: Bits[k][i] is number k of thread i.
using Bits = std::array<std::array<uint32_t, kBatch>, 4>;

// The next four numbers of the threads that follow `first`. Offsets count in numbers, as curand's.
void draw_bits(uint64_t seed, uint64_t first, uint64_t offset, Bits& bits);

// What a batch makes of them by curand's `curand_normal4` at one of the four places, with an error of some units in the
// last place, as a GPU's own.
void normal_floats(const Bits& bits, int place, float* values);

// The size of the simulated GPU, which limits the threads of a launch.
void set_multiprocessors(int count, int threads_of_each);
int64_t most_blocks();

// The launch of a kernel in which each thread draws `unroll` elements at a time.
struct Launch {
  Launch(int64_t elements, int64_t unroll)
      : threads(std::min((elements + kBlock - 1) / kBlock, most_blocks()) * kBlock),
        rounds((elements - 1) / (threads * unroll) + 1),
        // Before 2.6 as if a thread drew four elements of each type.
        increment(static_cast<uint64_t>((elements - 1) / (threads * (SIM_TORCH_AT_LEAST(2, 6) ? unroll : 4)) + 1) * 4) {
  }

  static constexpr int64_t kBlock = 256;
  int64_t threads;
  int64_t rounds;
  uint64_t increment;  // of the generator's offset
};

// Calls `use(bits, element, count)` for every batch: thread `i` of `count` draws the numbers `bits[..][i]`, the first
// of which is for element `element + i`, the next for one that is `launch.threads` further.
template <class Use>
void for_each_batch(const Philox& philox, const Launch& launch, int64_t elements, int64_t unroll, const Use& use) {
  const auto before_last = (launch.rounds - 1) * launch.threads * unroll;
  const auto in_last = std::min(launch.threads, elements - before_last);
  const auto batches = [](int64_t threads) { return (threads + kBatch - 1) / kBatch; };
  const auto whole = batches(launch.threads);
  constexpr int64_t kGrain = 256;
  at::parallel_for(0, (launch.rounds - 1) * whole + batches(in_last), kGrain, [&](int64_t begin, int64_t end) {
    Bits bits;
    for (auto batch = begin; batch < end; ++batch) {
      const auto round = batch / whole, thread = batch % whole * kBatch;
      draw_bits(philox.seed, static_cast<uint64_t>(thread), philox.offset + 4 * static_cast<uint64_t>(round), bits);
      const auto threads = round == launch.rounds - 1 ? in_last : launch.threads;
      use(bits, round * launch.threads * unroll + thread, std::min<int64_t>(kBatch, threads - thread));
    }
  });
}

// Calls `use(bits, element, count, neighbours)` for every batch: thread `i` of `count` draws the numbers `bits[..][i]`
// for up to four neighbours, the first of which is `element + i * neighbours`. It draws again for the next four.
template <class Use>
void for_each_group(const Philox& philox, const Launch& launch, int64_t elements, int64_t neighbours, const Use& use) {
  const auto groups = elements / neighbours, draws = std::max<int64_t>(neighbours / 4, 1);
  constexpr int64_t kGrain = 256;
  at::parallel_for(0, (groups + kBatch - 1) / kBatch, kGrain, [&](int64_t begin, int64_t end) {
    Bits bits;
    for (auto batch = begin; batch < end; ++batch) {
      const auto group = batch * kBatch, round = group / launch.threads, thread = group % launch.threads;
      for (int64_t i = 0; i < draws; ++i) {
        const auto offset = philox.offset + 4 * static_cast<uint64_t>(round * draws + i);
        draw_bits(philox.seed, static_cast<uint64_t>(thread), offset, bits);
        use(bits, group * neighbours + 4 * i, std::min<int64_t>(kBatch, groups - group), neighbours);
      }
    }
  });
}

}  // namespace sim::philox

namespace sim {

using philox::Bits, philox::draw_bits, philox::for_each_batch, philox::for_each_group, philox::kBatch, philox::Launch,
    philox::most_blocks, philox::normal_floats, philox::set_multiprocessors;

}  // namespace sim
