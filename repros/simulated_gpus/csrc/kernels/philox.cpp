// Philox 4x32-10 for many threads at once.
#include "kernels/philox.h"

#include <atomic>

namespace sim {

namespace {

// The plain profile's (profiles.py).
std::atomic<int64_t> blocks{108 * (2048 / Launch::kBlock)};

// Four threads' numbers in a vector, whose products are then instructions of the host's vector unit.
using Four = uint64_t __attribute__((vector_size(32)));
constexpr int kFours = kBatch / 4;
constexpr uint64_t kLow = 0xFFFFFFFF;

#define SIM_ALWAYS_INLINE inline __attribute__((always_inline))

SIM_ALWAYS_INLINE void draw_fours(uint64_t seed, uint64_t first, uint64_t offset, Bits& bits) {
  constexpr uint64_t kFactor[2] = {0xD2511F53, 0xCD9E8D57};
  constexpr uint32_t kStep[2] = {0x9E3779B9, 0xBB67AE85};
  const uint64_t counter = offset / 4;
  for (int four = 0; four < kFours; ++four) {
    const uint64_t thread = first + static_cast<uint64_t>(4 * four);
    Four threads = {thread, thread + 1, thread + 2, thread + 3};
    Four c0 = Four{} + (counter & kLow), c1 = Four{} + (counter >> 32), c2 = threads & kLow, c3 = threads >> 32;
    uint32_t key[2] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
    for (int round = 0; round < 10; ++round) {
      const Four product0 = c0 * kFactor[0], product1 = c2 * kFactor[1];
      c0 = (product1 >> 32) ^ c1 ^ key[0];
      c2 = (product0 >> 32) ^ c3 ^ key[1];
      c1 = product1 & kLow;
      c3 = product0 & kLow;
      key[0] += kStep[0];
      key[1] += kStep[1];
    }
    for (int i = 0; i < 4; ++i) {
      const auto to = static_cast<size_t>(4 * four + i);
      bits[0][to] = static_cast<uint32_t>(c0[i]);
      bits[1][to] = static_cast<uint32_t>(c1[i]);
      bits[2][to] = static_cast<uint32_t>(c2[i]);
      bits[3][to] = static_cast<uint32_t>(c3[i]);
    }
  }
}

}  // namespace

void draw_bits(uint64_t seed, uint64_t first, uint64_t offset, Bits& bits) {
  draw_fours(seed, first, offset, bits);
}

void set_multiprocessors(int count, int threads_of_each) {
  blocks = static_cast<int64_t>(count) * (threads_of_each / Launch::kBlock);
}

int64_t most_blocks() {
  return blocks;
}

}  // namespace sim
