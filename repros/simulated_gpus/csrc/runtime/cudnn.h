// Whether PyTorch finds cuDNN. It finds none: convolutions and batch norm take this device's kernels. Only recurrent
// layers go through cuDNN's operators (kernels/cudnn_layers.cpp).
#pragma once

#include "torch_versions.h"

namespace sim::hooks {

// The version number of the cuDNN that this release's wheels require, from torch's metadata:
// `Requires-Dist: nvidia-cudnn-cu12==9.10.2.21` (9.10.2 is 91002, 8.9.2 is 8902).
constexpr long kCuDNNVersion = SIM_TORCH_AT_LEAST(2, 15) ? 92600
    : SIM_TORCH_AT_LEAST(2, 14)                          ? 92400
    : SIM_TORCH_AT_LEAST(2, 12)                          ? 92000
    : SIM_TORCH_AT_LEAST(2, 11)                          ? 91900
    : SIM_TORCH_AT_LEAST(2, 8)                           ? 91002
    : SIM_TORCH_AT_LEAST(2, 7)                           ? 90501
    : SIM_TORCH_AT_LEAST(2, 4)                           ? 90100
    : SIM_TORCH_AT_LEAST(2, 1)                           ? 8902
                                                         : 8500;

// While one exists, the hooks report to this thread that cuDNN is available, or that it is not.
class CuDNNOffer {
 public:
  explicit CuDNNOffer(bool offered);
  ~CuDNNOffer();
  CuDNNOffer(const CuDNNOffer&) = delete;
  CuDNNOffer& operator=(const CuDNNOffer&) = delete;

  static bool is_offered();

 private:
  bool before_;
};

}  // namespace sim::hooks

namespace sim {

using hooks::CuDNNOffer, hooks::kCuDNNVersion;

}  // namespace sim
