// Contract held: torch/csrc/distributed/c10d/Work.hpp.
#include "distributed/work.h"

#include "torch_versions.h"

#if SIM_HAS_COLLECTIVES
#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <atomic>

namespace sim::work {

namespace {

using c10d::OpType;

// A profiler shows a collective under the name that NCCL's group gives it (ProcessGroupNCCL.cpp), in addition to Gloo's
// own.
const char* name_for_profilers(OpType type) {
  switch (type) {
    case OpType::BROADCAST:
      return "nccl:broadcast";
    case OpType::ALLREDUCE:
      return "nccl:all_reduce";
    case OpType::REDUCE:
      return "nccl:reduce";
    case OpType::ALLGATHER:
      return "nccl:all_gather";
    case OpType::REDUCE_SCATTER:
      return "nccl:reduce_scatter";
    case OpType::ALLTOALL_BASE:
    case OpType::ALLTOALL:
      return "nccl:all_to_all";
    case OpType::GATHER:
      return "nccl:gather";
    case OpType::SCATTER:
      return "nccl:scatter";
    case OpType::SEND:
      return "nccl:send";
    case OpType::RECV:
      return "nccl:recv";
    default:
      return nullptr;
  }
}

// Tensors with the shapes of the inputs, where the results tell them: a rank's part has the shape of each part that is
// gathered.
SIM_OPTIONAL<std::vector<at::Tensor>> inputs_of(OpType type, const std::vector<at::Tensor>& outputs) {
  using Inputs = SIM_OPTIONAL<std::vector<at::Tensor>>;
  if (type == OpType::ALLGATHER && !outputs.empty()) {
    return Inputs({outputs.front()});
  }
  switch (type) {
    case OpType::BROADCAST:
    case OpType::ALLREDUCE:
    case OpType::REDUCE:
    case OpType::ALLTOALL_BASE:
    case OpType::SEND:
    case OpType::RECV:
      return Inputs(outputs);
    default:
      return Inputs();
  }
}

}  // namespace

Work::Work(std::vector<WorkPtr> parts, std::vector<at::Tensor> outputs, c10d::OpType type, std::function<void()> finish)
    : c10d::Work(-1, type, name_for_profilers(type), inputs_of(type, outputs)),
      parts_(std::move(parts)),
      outputs_(std::move(outputs)),
      finish_(std::move(finish)) {
  if (recordFunctionEndCallback_) {
    recordFunctionEndCallback_();
    recordFunctionEndCallback_ = nullptr;
  }
}

bool Work::isCompleted() {
  const bool done = std::all_of(parts_.begin(), parts_.end(), [](const WorkPtr& part) { return part->isCompleted(); });
  if (done && isSuccess()) {
    finish();
  }
  return done;
}

bool Work::isSuccess() const {
  return std::all_of(parts_.begin(), parts_.end(), [](const WorkPtr& part) { return part->isSuccess(); });
}

std::exception_ptr Work::exception() const {
  for (const auto& part : parts_) {
    if (auto error = part->exception()) {
      return error;
    }
  }
  return nullptr;
}

int Work::sourceRank() const {
  return parts_.size() == 1 ? parts_.front()->sourceRank() : c10d::Work::sourceRank();
}

std::vector<at::Tensor> Work::result() {
  return outputs_;
}

void Work::synchronize() {
  for (const auto& part : parts_) {
    part->synchronize();
  }
  finish();
}

bool Work::wait(std::chrono::milliseconds timeout) {
  bool done = true;
  for (const auto& part : parts_) {
    done = part->wait(timeout) && done;
  }
  finish();
  return done;
}

void Work::abort() {
  for (const auto& part : parts_) {
    part->abort();
  }
}

c10::intrusive_ptr<c10::ivalue::Future> Work::getFuture() {
  const std::lock_guard<std::mutex> lock(future_mutex_);
  if (future_ != nullptr) {
    return future_;
  }
  std::vector<c10::Device> devices;
  if (!outputs_.empty()) {
    devices.push_back(outputs_.front().device());
  }
  future_ = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::ofTensors(), devices);
  const auto self = c10::intrusive_ptr<Work>::unsafe_reclaim_from_nonowning(this);
  // Runs in a thread of Gloo, where an exception would end the process.
  const auto complete = [self] {
    try {
      self->finish();
    } catch (...) {
      self->future_->setErrorIfNeeded(std::current_exception());
      return;
    }
    self->future_->markCompleted(c10::IValue(self->outputs_));
  };
  const auto left = std::make_shared<std::atomic<size_t>>(parts_.size());
  for (const auto& part : parts_) {
    part->getFuture()->addCallback([self, left, complete](c10::ivalue::Future& host) {
      if (host.hasError()) {
        self->future_->setErrorIfNeeded(host.exception_ptr());
      } else if (--*left == 0) {
        complete();
      }
    });
  }
  if (parts_.empty()) {
    complete();
  }
  return future_;
}

void Work::finish() {
  std::call_once(finished_, [this] {
    if (finish_) {
      const at::AutoDispatchBelowADInplaceOrView below;
      finish_();
    }
  });
}

}  // namespace sim::work

#endif
