// The c10d work handle: Gloo's work on the host aliases, presented as work on the device tensors.
#pragma once

#include "torch_versions.h"

#if SIM_HAS_COLLECTIVES
#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <functional>
#include <mutex>
#include <vector>

namespace sim::work {

using WorkPtr = c10::intrusive_ptr<c10d::Work>;

// Completed when each of `parts` is. Results and futures contain the device tensors: DDP's reducer reads the future's
// value.
class Work final : public c10d::Work {
 public:
  // `finish` runs once, after the parts have completed and before the caller is notified.
  Work(
      std::vector<WorkPtr> parts, std::vector<at::Tensor> outputs, c10d::OpType type,
      std::function<void()> finish = nullptr);

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  int sourceRank() const override;
  std::vector<at::Tensor> result() override;
  void synchronize() override;
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  void abort() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

 private:
  void finish();

  std::vector<WorkPtr> parts_;
  std::vector<at::Tensor> outputs_;
  std::function<void()> finish_;
  std::once_flag finished_;
  std::mutex future_mutex_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

}  // namespace sim::work

namespace sim {

using work::Work, work::WorkPtr;

}  // namespace sim
#endif
