// `torch.use_deterministic_algorithms(True)`: the operators that CUDA refuses, and the memory that it fills.
//
// Contracts held: the alerts in ATen/native/cuda (2.4.0) and where they are raised; the alerts of a release are those
// in its documentation of `use_deterministic_algorithms` (checked for 2.0.1 to 2.15.0 without 2.11, 2.12 and 2.14).
// Products ask for cuBLAS's workspace (ATen/cuda/CUDABlas.cpp) up to 2.9.
#include "dispatch/determinism.h"

#include "runtime/memory.h"
#include "torch_versions.h"

#include <ATen/Context.h>
#include <ATen/core/Reduction.h>
#include <ATen/native/TensorFactories.h>

#include <iterator>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace sim::determinism {

namespace {

using CallArguments = c10::ArrayRef<c10::IValue>;
using Condition = bool (*)(const c10::FunctionSchema&, CallArguments);

const c10::IValue& argument_of(const c10::FunctionSchema& schema, CallArguments arguments, const char* name) {
  return arguments[static_cast<size_t>(*schema.argumentIndexWithName(name))];
}

bool always(const c10::FunctionSchema& /*schema*/, CallArguments /*arguments*/) {
  return true;
}

bool has_dimension(const c10::FunctionSchema& schema, CallArguments /*arguments*/) {
  return schema.argumentIndexWithName("dim").has_value();
}

bool is_accumulated(const c10::FunctionSchema& schema, CallArguments arguments) {
  return argument_of(schema, arguments, "accumulate").toBool();
}

bool is_weighted(const c10::FunctionSchema& schema, CallArguments arguments) {
  const auto& weights = argument_of(schema, arguments, "weights");
  return weights.isTensor() && weights.toTensor().defined();
}

bool is_reduced(const c10::FunctionSchema& schema, CallArguments arguments) {
  return argument_of(schema, arguments, "reduction").toInt() != at::Reduction::None;
}

bool is_product(const c10::FunctionSchema& schema, CallArguments arguments) {
  return schema.argumentIndexWithName("reduce").has_value() &&
      argument_of(schema, arguments, "reduce").toStringRef() == "prod";
}

bool is_maximum(const c10::FunctionSchema& schema, CallArguments arguments) {
  constexpr int64_t kMax = 2;  // ATen/native/EmbeddingBag.h, EmbeddingBagMode
  return argument_of(schema, arguments, "mode").toInt() == kMax;
}

#if !SIM_TORCH_AT_LEAST(2, 15)
bool has_fractions(const c10::FunctionSchema& /*schema*/, CallArguments arguments) {
  const auto type = arguments[0].toTensor().scalar_type();
  return c10::isFloatingType(type) || c10::isComplexType(type);
}
#endif

struct Alert {
  const char* name;
  Condition condition = &always;
};

// Constants: for a map's initializer list the compiler makes code that constructs and destroys each name.
constexpr std::pair<const char*, Alert> kAlerts[] = {
    {"aten::_adaptive_avg_pool2d_backward", {"adaptive_avg_pool2d_backward_cuda"}},
    {"aten::_adaptive_avg_pool3d_backward", {"adaptive_avg_pool3d_backward_cuda"}},
    {"aten::_ctc_loss_backward", {"ctc_loss_backward_gpu"}},
    {"aten::_embedding_bag_backward", {"embedding_bag_backward_cuda_max", &is_maximum}},
    {"aten::_embedding_bag_dense_backward", {"embedding_bag_backward_cuda_max", &is_maximum}},
    {"aten::_upsample_bicubic2d_aa_backward", {"upsample_bicubic2d_aa_backward_out_cuda"}},
    {"aten::_upsample_bilinear2d_aa_backward", {"upsample_bilinear2d_aa_backward_out_cuda"}},
    {"aten::adaptive_max_pool2d_backward", {"adaptive_max_pool2d_backward_cuda"}},
    {"aten::avg_pool3d_backward", {"avg_pool3d_backward_cuda"}},
    {"aten::bincount", {"_bincount_cuda", &is_weighted}},
#if !SIM_TORCH_AT_LEAST(2, 15)
    {"aten::cumsum", {"cumsum_cuda_kernel", &has_fractions}},
    {"aten::cumsum_", {"cumsum_cuda_kernel", &has_fractions}},
#endif
    {"aten::fractional_max_pool2d_backward", {"fractional_max_pool2d_backward_cuda"}},
    {"aten::fractional_max_pool3d_backward", {"fractional_max_pool3d_backward_cuda"}},
    {"aten::grid_sampler_2d_backward", {"grid_sampler_2d_backward_cuda"}},
    {"aten::grid_sampler_3d_backward", {"grid_sampler_3d_backward_cuda"}},
    {"aten::histc", {"_histc_cuda"}},
    {"aten::index_reduce", {"index_reduce_cuda"}},
    {"aten::index_reduce_", {"index_reduce_cuda"}},
#if !SIM_TORCH_AT_LEAST(2, 10)
    {"aten::kthvalue", {"kthvalue CUDA"}},
#endif
#if !SIM_TORCH_AT_LEAST(2, 13)
    {"aten::max_pool3d_with_indices_backward", {"max_pool3d_with_indices_backward_cuda"}},
#endif
    {"aten::median", {"median CUDA with indices output", &has_dimension}},
    {"aten::nanmedian", {"median CUDA with indices output", &has_dimension}},
    {"aten::nll_loss2d_forward", {"nll_loss2d_forward_out_cuda_template", &is_reduced}},
    {"aten::put_", {"put_", &is_accumulated}},  // without, the CPU's kernel raises it, too
    {"aten::reflection_pad1d_backward", {"reflection_pad1d_backward_out_cuda"}},
    {"aten::reflection_pad2d_backward", {"reflection_pad2d_backward_cuda"}},
    {"aten::reflection_pad3d_backward", {"reflection_pad3d_backward_out_cuda"}},
    {"aten::replication_pad1d_backward", {"replication_pad1d_backward_cuda"}},
    {"aten::replication_pad2d_backward", {"replication_pad2d_backward_cuda"}},
    {"aten::replication_pad3d_backward", {"replication_pad3d_backward_cuda"}},
    {"aten::scatter_reduce", {"scatter_reduce_cuda_prod_", &is_product}},
    {"aten::scatter_reduce_", {"scatter_reduce_cuda_prod_", &is_product}},
    {"aten::upsample_bicubic2d_backward", {"upsample_bicubic2d_backward_out_cuda"}},
    {"aten::upsample_bilinear2d_backward", {"upsample_bilinear2d_backward_out_cuda"}},
    {"aten::upsample_linear1d_backward", {"upsample_linear1d_backward_out_cuda"}},
    {"aten::upsample_trilinear3d_backward", {"upsample_trilinear3d_backward_out_cuda"}},
};

const std::unordered_map<std::string, Alert>& alerts() {
  static const std::unordered_map<std::string, Alert> all(std::begin(kAlerts), std::end(kAlerts));
  return all;
}

#if !SIM_TORCH_AT_LEAST(2, 10)
bool multiplies_with_cublas(const std::string& name) {
  static const std::unordered_set<std::string> all{
      "aten::mm",    "aten::addmm",   "aten::addmm_",   "aten::_addmm_activation",
      "aten::bmm",   "aten::baddbmm", "aten::baddbmm_", "aten::mv",
      "aten::addmv", "aten::addmv_",  "aten::dot",      "aten::vdot"};
  return all.count(name) > 0;
}
#endif

}  // namespace

void alert_nondeterministic(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments) {
  auto& context = at::globalContext();
  if (!context.deterministicAlgorithms()) {
    return;
  }
  const auto found = alerts().find(schema.name());
  if (found != alerts().end() && found->second.condition(schema, arguments)) {
    at::Context::alertNotDeterministic(found->second.name);
  }
#if !SIM_TORCH_AT_LEAST(2, 10)
  if (multiplies_with_cublas(schema.name())) {
    context.alertCuBLASConfigNotDeterministic();
  }
#endif
}

at::Tensor fill_new_memory(at::Tensor tensor) {
#if SIM_TORCH_AT_LEAST(2, 1)
  const auto& context = at::globalContext();
#if SIM_TORCH_AT_LEAST(2, 2)
  const bool is_filled = context.deterministicFillUninitializedMemory();
#else
  constexpr bool is_filled = true;
#endif
  if (is_filled && context.deterministicAlgorithms()) {
    auto host = host_alias(tensor);
    at::native::fill_empty_deterministic_(host);
  }
#endif
  return tensor;
}

}  // namespace sim::determinism
