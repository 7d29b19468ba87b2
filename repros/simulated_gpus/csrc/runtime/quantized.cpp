// Contract held: ATen/quantized/Quantizer.h. The scales and zero points of channels are tensors, on a device tensor's
// device.
#include "runtime/quantized.h"

#include "runtime/memory.h"

#include <ATen/quantized/QTensorImpl.h>
#include <ATen/quantized/Quantizer.h>
#include <c10/util/intrusive_ptr.h>

#include <utility>

namespace sim::quantized {

namespace {

// A model's quantizer for a tensor of the other backend. Never inlined: it makes aliases of the channels' tensors, and
// the functions that make aliases call it; GCC unrolls that circle until its memory is full.
C10_NOINLINE at::QuantizerPtr quantizer_for(const at::Tensor& model, c10::Device device) {
  auto quantizer = at::get_qtensorimpl(model)->quantizer();
  const auto* channels = dynamic_cast<const at::PerChannelAffineQuantizer*>(quantizer.get());
  if (channels == nullptr) {
    return quantizer;
  }
  const auto moved = [&](const at::Tensor& each) {
    if (device.is_cpu()) {
      return host_alias(each);
    }
    return is_sim(each) ? each : adopt_result(each, device.index());
  };
  const auto scales = moved(channels->scales()), zero_points = moved(channels->zero_points());
  if (channels->qscheme() == at::kPerChannelAffine) {
    return c10::make_intrusive<at::PerChannelAffineQuantizer>(
        channels->scalar_type(), scales, zero_points, channels->axis());
  }
  return c10::make_intrusive<at::PerChannelAffineFloatQParamsQuantizer>(
      channels->scalar_type(), scales, zero_points, channels->axis());
}

}  // namespace

at::Tensor quantized_over(const at::Tensor& model, c10::Storage storage) {
  const auto device = storage.device();
  const auto key = device.is_cpu() ? c10::DispatchKey::QuantizedCPU : c10::DispatchKey::QuantizedCUDA;
  return at::detail::make_tensor<at::QTensorImpl>(
      std::move(storage), c10::DispatchKeySet(key), model.dtype(), quantizer_for(model, device));
}

void set_quantizer(const at::Tensor& device, const at::Tensor& host) {
  at::get_qtensorimpl(device)->set_quantizer_(quantizer_for(host, device.device()));
}

}  // namespace sim::quantized
