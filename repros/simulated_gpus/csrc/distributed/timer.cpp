// The timer that DDP's logger uses for the times of its phases; DDP warns about a device without one.
//
// Contract held: torch/csrc/distributed/c10d/reducer_timer.hpp.
#include "runtime/device.h"
#include "torch_versions.h"

#if SIM_HAS_COLLECTIVES
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>

namespace sim::timer {

namespace {

class Timer final : public c10d::Timer {
 public:
  explicit Timer(c10::Device /*device*/) {}

  SIM_OPTIONAL<int64_t> measureDifference(Event start, Event end) override {
    const int64_t from = getTimeRef(start), to = getTimeRef(end);
    if (from == c10d::kUnsetTime || to == c10d::kUnsetTime || to < from) {
      return {};
    }
    return to - from;
  }
};

const bool timer_registered = [] {
  c10d::TimerRegistry()->Register(
      kDevice, [](c10::Device device) { return std::unique_ptr<c10d::Timer>(new Timer(device)); },
      c10::REGISTRY_PREFERRED);
  return true;
}();

}  // namespace

}  // namespace sim::timer

#endif
