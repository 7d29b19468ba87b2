// NCCL's error for two ranks on one device, as in a program without `torch.cuda.set_device`.
//
// Contract held: NCCL's init.cc ("Duplicate GPU detected"), as ProcessGroupNCCL reports it. NCCL compares devices while
// it connects, at a group's first collective. Here a rank writes its device to the group's store and reads the devices
// that are there already, without waiting. So the first rank waits in its collective for the rank that is refused.
#include "distributed/collectives.h"
#include "distributed/nccl_version.h"
#include "runtime/memory.h"
#include "torch_versions.h"

#if SIM_HAS_COLLECTIVES
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <c10/util/Exception.h>

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <sstream>
#include <string>

namespace sim::duplicate_gpu {

namespace {

// Which of the machine's devices one of this process is: a launcher may show each process another one as its first.
std::string device_of_machine(c10::DeviceIndex index) {
  const char* list = std::getenv("CUDA_VISIBLE_DEVICES");
  if (list == nullptr) {
    return std::to_string(index);
  }
  std::istringstream names(list);
  std::string name;
  for (c10::DeviceIndex at = 0; at <= index; ++at) {
    std::getline(names, name, ',');
  }
  return name;
}

std::string machine() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace

}  // namespace sim::duplicate_gpu

namespace sim::collectives {

void Collectives::check_device(const at::Tensor& tensor) {
  if (!store_ || is_checked_ || !is_sim(tensor)) {
    return;
  }
  is_checked_ = true;
  const auto index = tensor.device().index();
  const auto key =
      "simulated device " + duplicate_gpu::machine() + "/" + duplicate_gpu::device_of_machine(index) + " of rank ";
  store_->set(key + std::to_string(getRank()), std::vector<uint8_t>{1});
  for (int other = 0; other < getSize(); ++other) {
    TORCH_CHECK_WITH(
        DistBackendError, other == getRank() || !store_->check({key + std::to_string(other)}),
        "NCCL error in: torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, invalid usage (run with NCCL_DEBUG=WARN for "
        "details), NCCL "
        "version ",
        kNcclVersion,
        "\nncclInvalidUsage: This usually reflects invalid usage of NCCL library.\nLast error:\nDuplicate GPU detected "
        ": rank ",
        getRank(), " and rank ", other, " both on CUDA device ", index + 1, "000");
  }
}

}  // namespace sim::collectives

#endif
