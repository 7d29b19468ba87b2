// Quantized tensors: integers in memory, and a quantizer, which says what numbers they stand for.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/Storage.h>

namespace sim::quantized {

// A quantized tensor like `model` over `storage`, of the other backend; without its shape.
at::Tensor quantized_over(const at::Tensor& model, c10::Storage storage);
// Gives a device tensor what a kernel has made of its alias's quantizer.
void set_quantizer(const at::Tensor& device, const at::Tensor& host);

}  // namespace sim::quantized

namespace sim {

using quantized::quantized_over, quantized::set_quantizer;

}  // namespace sim
