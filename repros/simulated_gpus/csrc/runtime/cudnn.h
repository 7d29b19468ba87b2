// What PyTorch asks about cuDNN. None is there: convolutions and batch norm take the kernels that this device has, and
// recurrent layers alone take the way through cuDNN's operators (kernels/cudnn_layers.cpp).
#pragma once

#include "torch_versions.h"

namespace sim::hooks {

// cuDNN's version as the library gives it, of the wheels that the package index has of this release: the metadata of
// torch, `Requires-Dist: nvidia-cudnn-cu12==9.10.2.21` (9.10.2 is 91002, 8.9.2 is 8902).
constexpr long kCuDNNVersion = SIM_TORCH_AT_LEAST(2, 15) ? 92600
    : SIM_TORCH_AT_LEAST(2, 14)                          ? 92400
    : SIM_TORCH_AT_LEAST(2, 12)                          ? 92000
    : SIM_TORCH_AT_LEAST(2, 11)                          ? 91900
    : SIM_TORCH_AT_LEAST(2, 8)                           ? 91002
    : SIM_TORCH_AT_LEAST(2, 7)                           ? 90501
    : SIM_TORCH_AT_LEAST(2, 4)                           ? 90100
    : SIM_TORCH_AT_LEAST(2, 1)                           ? 8902
                                                         : 8500;

// While it lives, PyTorch is told on this thread that cuDNN is there, or that it is not.
class CuDNNOffer {
 public:
  explicit CuDNNOffer(bool offered);
  ~CuDNNOffer();
  CuDNNOffer(const CuDNNOffer&) = delete;
  CuDNNOffer& operator=(const CuDNNOffer&) = delete;

  static bool stands();

 private:
  bool before_;
};

}  // namespace sim::hooks

namespace sim {

using hooks::CuDNNOffer, hooks::kCuDNNVersion;

}  // namespace sim
