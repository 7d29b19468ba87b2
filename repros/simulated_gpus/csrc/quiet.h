// Silence while the kernels of one translation unit are registered.
//
// A CUDA build has kernels of its own under the same keys, and PyTorch warns about each one that is replaced
// (ATen/core/dispatch/OperatorEntry.cpp). Static objects are made in the order of their definition, so this header
// comes first in a unit and `sim_registered` ends it (build.py).
#pragma once

#include <c10/util/Exception.h>

namespace sim {

class Quiet final : public c10::WarningHandler {
 public:
  Quiet() : before_(c10::WarningUtils::get_warning_handler()) {
    c10::WarningUtils::set_warning_handler(this);
  }
  void process(const c10::Warning& /*warning*/) override {}
  bool end() {
    c10::WarningUtils::set_warning_handler(before_);
    return true;
  }

 private:
  c10::WarningHandler* before_;
};

static Quiet quiet;

}  // namespace sim
