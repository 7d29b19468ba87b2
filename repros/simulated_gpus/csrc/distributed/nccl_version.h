// The NCCL that the simulated one is.
#pragma once

namespace sim {

// The NCCL whose words the errors are.
constexpr const char* kNcclVersion = "2.27.5";

}  // namespace sim
