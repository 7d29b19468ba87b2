// Recurrent layers that CUDA computes by cuDNN: the arguments of a call, and a guard against cuDNN.
#pragma once

#include <cstdint>
#include <vector>

namespace sim {

enum RecurrentMode : int64_t { kRelu, kTanh, kLstm, kGru };  // cudnnRNNMode_t

// One call of a recurrent operator, without its tensors.
struct RecurrentCall {
  int64_t mode;
  bool has_biases;
  int64_t layers;
  bool batch_first;
  double dropout;
  bool train;
  bool bidirectional;
  std::vector<int64_t> batch_sizes;
};

}  // namespace sim

namespace sim::cudnn_layers {

// While it lives, this thread's calls of recurrent operators do not take cuDNN.
class WithoutCuDNN {
 public:
  WithoutCuDNN();
  ~WithoutCuDNN();
  WithoutCuDNN(const WithoutCuDNN&) = delete;
  WithoutCuDNN& operator=(const WithoutCuDNN&) = delete;
};

}  // namespace sim::cudnn_layers

namespace sim {

using cudnn_layers::WithoutCuDNN;

}  // namespace sim
