// A CUDA graph: what `torch._C._CUDAGraph` is in a CUDA build.
#pragma once

#include "graphs/recording.h"

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <memory>
#include <utility>
#include <vector>

namespace sim::graph {

class Graph {
 public:
  ~Graph();

  // All as ATen/cuda/CUDAGraph.h. A capture's error mode changes nothing here.
  void capture_begin();
  void capture_end();
  void replay();
  void reset();
  void register_generator(const at::Generator& generator);

  bool is_captured() const {
    return is_captured_;
  }

  // For the calls of a capture that is underway.
  Recording& recording() {
    return *recording_;
  }
  void invalidate() {
    is_invalid_ = true;
  }
  void check_generator(const at::Generator& generator) const;

 private:
  void leave();

  std::unique_ptr<Recording> recording_;
  std::vector<at::Generator> generators_;
  std::vector<std::pair<at::Generator, at::Tensor>> states_;
  c10::DeviceIndex device_ = 0;
  c10::StreamId stream_ = 0;
  bool is_captured_ = false;
  bool is_invalid_ = false;
};

}  // namespace sim::graph

namespace sim {

using graph::Graph;

}  // namespace sim
