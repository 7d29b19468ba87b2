// Philox 4x32-10 for many threads at once.
#include "kernels/philox.h"

#include <atomic>
#include <cstring>
#ifdef __x86_64__
#include <immintrin.h>
#endif

// The loops below are vectorised, which the build's -O1 does not do.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#endif

namespace sim::philox {

namespace {

// The plain profile's (profiles.py).
std::atomic<int64_t> blocks{108 * (2048 / Launch::kBlock)};

constexpr uint32_t kFactor[2] = {0xD2511F53, 0xCD9E8D57}, kStep[2] = {0x9E3779B9, 0xBB67AE85};

void draw_one_by_one(uint64_t seed, uint64_t first, uint64_t counter, Bits& bits) {
  for (size_t i = 0; i < kBatch; ++i) {
    const uint64_t thread = first + i;
    auto c0 = static_cast<uint32_t>(counter), c1 = static_cast<uint32_t>(counter >> 32);
    auto c2 = static_cast<uint32_t>(thread), c3 = static_cast<uint32_t>(thread >> 32);
    auto key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round, key0 += kStep[0], key1 += kStep[1]) {
      const uint64_t product0 = uint64_t{c0} * kFactor[0], product1 = uint64_t{c2} * kFactor[1];
      c0 = static_cast<uint32_t>(product1 >> 32) ^ c1 ^ key0;
      c2 = static_cast<uint32_t>(product0 >> 32) ^ c3 ^ key1;
      c1 = static_cast<uint32_t>(product1);
      c3 = static_cast<uint32_t>(product0);
    }
    bits[0][i] = c0, bits[1][i] = c1, bits[2][i] = c2, bits[3][i] = c3;
  }
}

#ifdef __x86_64__
// The same for four threads in each vector. A product takes the lower half of a lane, so the upper may be anything.
__attribute__((target("avx2"))) void draw_by_fours(uint64_t seed, uint64_t first, uint64_t counter, Bits& bits) {
  const auto factor0 = _mm256_set1_epi64x(kFactor[0]), factor1 = _mm256_set1_epi64x(kFactor[1]);
  const auto evens = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
  for (size_t i = 0; i < kBatch; i += 4) {
    const auto threads =
        _mm256_add_epi64(_mm256_set1_epi64x(static_cast<int64_t>(first + i)), _mm256_setr_epi64x(0, 1, 2, 3));
    __m256i c[4] = {
        _mm256_set1_epi64x(static_cast<int64_t>(counter)), _mm256_set1_epi64x(static_cast<int64_t>(counter >> 32)),
        threads, _mm256_srli_epi64(threads, 32)};
    auto key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round, key0 += kStep[0], key1 += kStep[1]) {
      const auto product0 = _mm256_mul_epu32(c[0], factor0), product1 = _mm256_mul_epu32(c[2], factor1);
      c[0] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(product1, 32), c[1]), _mm256_set1_epi64x(key0));
      c[2] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(product0, 32), c[3]), _mm256_set1_epi64x(key1));
      c[1] = product1;
      c[3] = product0;
    }
    for (size_t place = 0; place < 4; ++place) {
      const auto packed = _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(c[place], evens));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(bits[place].data() + i), packed);
    }
  }
}
#endif

// Eight numbers in a vector, of the compiler's own: on each host what it has.
using Floats = float __attribute__((vector_size(32)));
using Ints = int32_t __attribute__((vector_size(32)));

#define SIM_INLINE inline __attribute__((always_inline))

SIM_INLINE void choose(const Ints& first, const Ints& a, const Ints& b, Floats& chosen) {
  chosen = (Floats)((a & first) | (b & ~first));
}

// The natural logarithm of normal numbers (Cephes, logf).
SIM_INLINE void log_of(const Floats& x, Floats& result) {
  Ints exponent = (((Ints)x) >> 23) - 126;
  const auto half = (Floats)((((Ints)x) & 0x7FFFFF) | 0x3F000000);
  const Ints is_small = half < 0.707106781186547524F;
  exponent += is_small;
  const auto doubled = (Floats)(((Ints)half) & is_small);
  const Floats m = half + doubled - 1.0F, z = m * m, e = __builtin_convertvector(exponent, Floats);
  Floats y = 7.0376836292E-2F * m - 1.1514610310E-1F;
  y = y * m + 1.1676998740E-1F;
  y = y * m - 1.2420140846E-1F;
  y = y * m + 1.4249322787E-1F;
  y = y * m - 1.6668057665E-1F;
  y = y * m + 2.0000714765E-1F;
  y = y * m - 2.4999993993E-1F;
  y = y * m + 3.3333331174E-1F;
  y = y * m * z - e * 2.12194440E-4F - 0.5F * z;
  result = m + y + e * 0.693359375F;
}

// The sine of angles from 0 to 2 pi, and a number of quarter turns more (Cephes, sinf).
SIM_INLINE void sine_of(const Floats& x, int quarters, Floats& result) {
  const Ints eighth = (__builtin_convertvector(x * 1.27323954473516F, Ints) + 1) & ~1;
  const auto y = __builtin_convertvector(eighth, Floats);
  const Floats r = ((x - y * 0.78515625F) - y * 2.4187564849853515625E-4F) - y * 3.77489497744594108E-8F, z = r * r;
  const Floats sine = ((-1.9515295891E-4F * z + 8.3321608736E-3F) * z - 1.6666654611E-1F) * z * r + r;
  const Floats cosine =
      ((2.443315711809948E-5F * z - 1.388731625493765E-3F) * z + 4.166664568298827E-2F) * z * z - 0.5F * z + 1.0F;
  const Ints turned = eighth + 2 * quarters;
  choose((turned & 2) != 0, (Ints)cosine, (Ints)sine, result);
  result = (Floats)(((Ints)result) ^ ((turned & 4) << 29));
}

SIM_INLINE void draw_normals(const uint32_t* radii, const uint32_t* angles, int quarters, float* values) {
  constexpr float kTurn = 2.3283064e-10F * 6.2831855F;  // curand's 2 pi / 2^32
  float u[8], v[8], logs[8], sines[8];
  for (size_t i = 0; i < kBatch; i += 8) {
    for (size_t j = 0; j < 8; ++j) {
      u[j] = static_cast<float>(radii[i + j]) * 0x1p-32F + 0x1p-33F;
      v[j] = static_cast<float>(static_cast<double>(static_cast<float>(angles[i + j])) * kTurn + kTurn / 2);
    }
    Floats uniform, angle, log, sine;
    std::memcpy(&uniform, u, sizeof(u));
    std::memcpy(&angle, v, sizeof(v));
    log_of(uniform, log);
    sine_of(angle, quarters, sine);
    std::memcpy(logs, &log, sizeof(logs));
    std::memcpy(sines, &sine, sizeof(sines));
    for (size_t j = 0; j < 8; ++j) {
      values[i + j] = __builtin_sqrtf(-2.0F * logs[j]) * sines[j];
    }
  }
}

#ifdef __x86_64__
__attribute__((target("avx2"))) void draw_normals_avx2(
    const uint32_t* radii, const uint32_t* angles, int quarters, float* values) {
  draw_normals(radii, angles, quarters, values);
}

bool has_avx2() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}
#endif

}  // namespace

void draw_bits(uint64_t seed, uint64_t first, uint64_t offset, Bits& bits) {
#ifdef __x86_64__
  if (has_avx2()) {
    draw_by_fours(seed, first, offset / 4, bits);
    return;
  }
#endif
  draw_one_by_one(seed, first, offset / 4, bits);
}

void normal_floats(const Bits& bits, int place, float* values) {
  const auto *radii = bits[static_cast<size_t>(place & 2)].data(),
             *angles = bits[static_cast<size_t>((place & 2) + 1)].data();
#ifdef __x86_64__
  if (has_avx2()) {
    draw_normals_avx2(radii, angles, place & 1, values);
    return;
  }
#endif
  draw_normals(radii, angles, place & 1, values);
}

void set_multiprocessors(int count, int threads_of_each) {
  blocks = static_cast<int64_t>(count) * (threads_of_each / Launch::kBlock);
}

int64_t most_blocks() {
  return blocks;
}

}  // namespace sim::philox

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif
