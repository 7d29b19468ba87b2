// Permutations, as CUDA's kernels draw them.
//
// Contract held: ATen/native/cuda/Randperm.cu and Randperm.cuh (keys, their sort, a shuffle of equal ones).
#include "kernels/kernels.h"
#include "kernels/philox.h"
#include "kernels/random.h"
#include "runtime/generator.h"
#include "runtime/memory.h"
#include "torch_versions.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace sim::random_permutation {

namespace {

// Indices that are sorted by random keys, each with its key in the bits above: in 64 bits if they have room.
template <class Packed>
class Order {
 public:
  // The highest bit of a whole key is its sign: the sort has negative ones first.
  Order(const int64_t* keys, size_t count, int key_bits)
      : packed_(count), index_bits_(bits_of_index(count)), key_bits_(key_bits) {
    const uint64_t sign = key_bits == 64 || key_bits == 32 ? uint64_t{1} << (key_bits - 1) : 0;
    const uint64_t mask = key_bits == 64 ? ~uint64_t{0} : (uint64_t{1} << key_bits) - 1;
    for (size_t i = 0; i < count; ++i) {
      packed_[i] = Packed{(static_cast<uint64_t>(keys[i]) & mask) ^ sign} << index_bits_ | i;
    }
  }

  static int bits_of_index(size_t count) {
    int bits = 1;
    while (count >> bits != 0) {
      ++bits;
    }
    return bits;
  }

  // Keeps the order of equal keys.
  void sort() {
    constexpr int kDigit = 11;
    std::vector<Packed> sorted(packed_.size());
    for (int shift = index_bits_, end = index_bits_ + key_bits_; shift < end; shift += kDigit) {
      const uint64_t mask = (uint64_t{1} << std::min(kDigit, end - shift)) - 1;
      std::array<size_t, (1 << kDigit) + 1> begins{};
      for (const Packed each : packed_) {
        ++begins[(static_cast<uint64_t>(each >> shift) & mask) + 1];
      }
      std::partial_sum(begins.begin(), begins.end(), begins.begin());
      for (const Packed each : packed_) {
        sorted[begins[static_cast<uint64_t>(each >> shift) & mask]++] = each;
      }
      packed_.swap(sorted);
    }
  }

  // Shuffles each run of equal keys (`randperm_handle_duplicate_keys_kernel`).
  void shuffle_islands(const Philox& philox) {
    const auto key = [&](size_t i) { return packed_[i] >> index_bits_; };
    for (size_t begin = 0, end = 0; begin < packed_.size(); begin = end) {
      for (end = begin + 1; end < packed_.size() && key(end) == key(begin); ++end) {
      }
      Bits bits;
      uint64_t drawn = 0;
      for (size_t i = end - begin - 1; i > 0; --i, ++drawn) {
        if (drawn % 4 == 0) {
          draw_bits(philox.seed, begin, philox.offset + drawn, bits);
        }
        std::swap(packed_[begin + i], packed_[begin + bits[drawn % 4][0] % (i + 1)]);
      }
    }
  }

  void write(int64_t* indices) const {
    const auto mask = (uint64_t{1} << index_bits_) - 1;
    for (size_t i = 0; i < packed_.size(); ++i) {
      indices[i] = static_cast<int64_t>(static_cast<uint64_t>(packed_[i]) & mask);
    }
  }

 private:
  std::vector<Packed> packed_;
  int index_bits_, key_bits_;
};

template <class Packed>
at::Tensor permute_by(const at::Tensor& keys, int key_bits, const Philox& philox) {
  Order<Packed> order(keys.data_ptr<int64_t>(), static_cast<size_t>(keys.numel()), key_bits);
  order.sort();
  order.shuffle_islands(philox);
  auto indices = at::empty(keys.sizes(), at::TensorOptions(at::kLong));
  order.write(indices.data_ptr<int64_t>());
  return indices;
}

at::Tensor& randperm_out(int64_t n, SIM_OPTIONAL<at::Generator> generator, at::Tensor& result) {
  const auto used = prepare_to_draw(result, generator);
  const at::AutoDispatchBelowADInplaceOrView below;
  TORCH_CHECK(n >= 0, "n must be non-negative, got", n);
  at::native::check_supported_max_int_with_precision(n, result);
  result.resize_({n});
  if (n == 0) {
    return result;
  }
  const auto count = static_cast<double>(n);
  const int bits =
      std::min(64, static_cast<int>(std::ceil(std::log2(count - (6 * count * count + 1) / (std::log(0.9) * 12)))));
  const bool is_narrow = bits <= 32;
  auto keys = at::empty({n}, result.options().dtype(is_narrow ? at::kInt : at::kLong));
  keys.random_(
      is_narrow ? std::numeric_limits<int>::min() : std::numeric_limits<int64_t>::min(),
      is_narrow ? std::numeric_limits<int>::max() : std::numeric_limits<int64_t>::max(), used);
  const auto wide = kept_alias(keys).to(at::kLong);
  const auto philox = draw_philox(used, static_cast<uint64_t>(n));
  const bool fits = bits + Order<uint64_t>::bits_of_index(static_cast<size_t>(n)) <= 64;
  const auto order =
      fits ? permute_by<uint64_t>(wide, bits, philox) : permute_by<unsigned __int128>(wide, bits, philox);
  kept_alias(result).copy_(order);
  return result;
}

}  // namespace

void register_kernels(Registrar& registrar) {
  if (!draws_from_cpu()) {
    registrar.impl("randperm.generator_out", &randperm_out);
  }
}

}  // namespace sim::random_permutation
