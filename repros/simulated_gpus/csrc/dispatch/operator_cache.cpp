// Counts the operators that are deregistered.
#include "dispatch/operator_cache.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <memory>

namespace sim::operator_cache {

std::atomic<uint64_t> deregistrations{0};

namespace {

class CountDeregistrations final : public c10::OpRegistrationListener {
 public:
  void onOperatorRegistered(const c10::OperatorHandle& /*op*/) override {}
  void onOperatorDeregistered(const c10::OperatorHandle& /*op*/) override {
    deregistrations.fetch_add(1, std::memory_order_relaxed);
  }
};

// Never destroyed: operators are deregistered while the process exits, too.
const auto* const listener_registered = new c10::RegistrationHandleRAII(
    c10::Dispatcher::singleton().addRegistrationListener(std::make_unique<CountDeregistrations>()));

}  // namespace

}  // namespace sim::operator_cache
