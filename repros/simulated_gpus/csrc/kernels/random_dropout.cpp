// Dropout as CUDA's fused kernel draws its mask.
//
// Contract held: ATen/native/cuda/Dropout.cu. A thread takes neighbouring elements where the tensors allow to load
// several at once: 16 bytes of them from 2.7 on (pytorch#145746), at most four of any type before.
#include "kernels/draws.h"
#include "kernels/kernels.h"
#include "kernels/random.h"

#include <ATen/AccumulateType.h>
#include <ATen/Dispatch.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/FunctionRef.h>

#include <tuple>

namespace sim::random_dropout {

namespace {

// How many neighbours a thread takes (`get_vector_size`). Device memory begins at a multiple of 512 bytes.
int64_t neighbours(const at::Tensor& self) {
  const auto size = static_cast<int64_t>(self.element_size());
  int64_t count = SIM_TORCH_AT_LEAST(2, 7) ? 16 / size : 4;
  if (!self.is_non_overlapping_and_dense()) {
    return 1;
  }
  while (count > 1 && (self.storage_offset() % count != 0 || self.numel() % count != 0)) {
    count /= 2;
  }
  return count;
}

template <class Scalar>
struct Drop {
  using Wide = at::acc_type<Scalar, true>;

  void operator()(int64_t element, float drawn) const {
    const float kept = static_cast<Wide>(drawn) < p ? 1 : 0;
    result[element] = static_cast<Scalar>(static_cast<Wide>(from[element]) * kept * scale);
    mask[element] = kept != 0;
  }

  const Scalar* from;
  Scalar* result;
  bool* mask;
  Wide p, scale;
};

// Uses the numbers that were drawn for `count` elements: `first`, and each that is `step` further.
using UseDrawn = c10::function_ref<void(const float* drawn, int64_t count, int64_t first, int64_t step)>;

void draw(const Philox& philox, const Launch& launch, int64_t elements, int64_t neighbours, UseDrawn use) {
  if (neighbours == 1) {
    for_each_batch(philox, launch, elements, 4, [&](const Bits& bits, int64_t first, int64_t threads) {
      float values[kBatch];
      for (int place = 0; place < 4 && first < elements; ++place, first += launch.threads) {
        const auto count = std::min(threads, elements - first);
        UniformFloat::make(bits, count, place, values);
        use(values, count, first, 1);
      }
    });
    return;
  }
  for_each_group(
      philox, launch, elements, neighbours, [&](const Bits& bits, int64_t first, int64_t groups, int64_t step) {
        float values[kBatch];
        for (int place = 0; place < std::min<int64_t>(neighbours, 4); ++place) {
          UniformFloat::make(bits, groups, place, values);
          use(values, groups, first + place, step);
        }
      });
}

void fused_dropout(
    const at::Tensor& self, double kept, const Philox& philox, int64_t neighbours, const at::Tensor& result,
    const at::Tensor& mask) {
  const auto elements = self.numel();
  const Launch launch(elements, 4);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, self.scalar_type(), "fused_dropout", [&] {
    using Wide = at::acc_type<scalar_t, true>;
    const auto p = static_cast<Wide>(kept);
    const Drop<scalar_t> each{
        self.data_ptr<scalar_t>(), result.data_ptr<scalar_t>(), mask.data_ptr<bool>(), p, static_cast<Wide>(1.0 / p)};
    draw(philox, launch, elements, neighbours, [&](const float* drawn, int64_t count, int64_t first, int64_t step) {
      for (int64_t i = 0; i < count; ++i) {
        each(first + i * step, drawn[i]);
      }
    });
  });
}

std::tuple<at::Tensor, at::Tensor> native_dropout(const at::Tensor& self, double p, SIM_OPTIONAL<bool> train) {
  const auto generator = prepare_to_draw(self, {});
  const at::AutoDispatchBelowADInplaceOrView below;
  const auto bools = self.options().dtype(at::kBool);
  if (train.has_value() && !*train) {
    return {self.clone(), at::ones_like(self, bools)};
  }
  if (p == 1) {
    return {at::zeros_like(self), at::zeros_like(self, bools)};
  }
  auto mask = at::empty_like(self, bools);
  if (self.numel() == 0) {
    return {self.clone(), mask};
  }
  auto result = at::empty_like(self);
  const auto philox = draw_philox(generator, Launch(self.numel(), 4).increment);
  const auto at_once = neighbours(self);
  if (self.is_contiguous() || at_once > 1) {
    fused_dropout(self, 1 - p, philox, at_once, result, mask);
  } else {  // one by one, in the order of the indices
    const auto ordered = at::empty(self.sizes(), self.options()), ordered_mask = at::empty(self.sizes(), bools);
    fused_dropout(self.contiguous(), 1 - p, philox, 1, ordered, ordered_mask);
    result.copy_(ordered);
    mask.copy_(ordered_mask);
  }
  return {result, mask};
}

}  // namespace

void register_kernels(Registrar& registrar) {
  if (!draws_from_cpu()) {
    registrar.impl("native_dropout", &native_dropout);
  }
}

}  // namespace sim::random_dropout
