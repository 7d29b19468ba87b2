// Quantized tensors: integers in memory, and a quantizer with their scale and zero point.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/Storage.h>

namespace sim::quantized {

// A quantized tensor like `model` over `storage`, of the other backend; without its shape.
[[gnu::noinline]] at::Tensor quantized_over(const at::Tensor& model, c10::Storage storage);
// Copies the quantizer of a host alias, which a kernel may have changed, to the device tensor.
void set_quantizer(const at::Tensor& device, const at::Tensor& host);

}  // namespace sim::quantized

namespace sim {

using quantized::quantized_over, quantized::set_quantizer;

}  // namespace sim
