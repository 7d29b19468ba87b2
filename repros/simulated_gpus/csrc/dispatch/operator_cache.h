// A cache of properties that are computed once for each operator.
#pragma once

#include <ATen/core/function_schema.h>

#include <atomic>
#include <cstdint>
#include <unordered_map>

namespace sim::operator_cache {

// How often an operator has been deregistered in this process, as `torch.library.Library._destroy` does.
extern std::atomic<uint64_t> deregistrations;

// One value for each operator, for one thread. The key is the schema's address, which costs less than a hash of the
// name. A later operator may get the address of a deregistered one, so each deregistration empties the cache.
template <class Value>
class OperatorCache {
 public:
  // Returns the operator's value, which `make(schema)` computes at its first call.
  template <class Make>
  const Value& get(const c10::FunctionSchema& schema, const Make& make) {
    const auto now = deregistrations.load(std::memory_order_relaxed);
    if (now != filled_since_) {
      values_.clear();
      filled_since_ = now;
    }
    auto found = values_.find(&schema);
    if (found == values_.end()) {
      found = values_.emplace(&schema, make(schema)).first;
    }
    return found->second;
  }

 private:
  std::unordered_map<const c10::FunctionSchema*, Value> values_;
  uint64_t filled_since_ = 0;
};

}  // namespace sim::operator_cache

namespace sim {

using operator_cache::OperatorCache;

}  // namespace sim
