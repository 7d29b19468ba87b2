// The placement checks inside CUDA's kernels, and the arguments that those kernels copy to the device or only read.
//
// Contracts held: in ATen/native, cuda/Indexing.cu (masked_fill__cuda), TensorAdvancedIndexing.cpp (_index_put_impl_,
// index_fill_), IndexingUtils.h (canDispatchToMaskedFill), Fill.cpp (fill_), TensorCompare.cpp (where_self_out),
// cuda/DistributionTemplates.h (bernoulli_kernel), BucketizationUtils.h (searchsorted_pre_check), Resize.h
// (checkSetStorage), BatchLinearAlgebra.cpp (linalg_lstsq), cuda/Sort.cpp (sort_cuda_kernel), Normalization.cpp
// (_batch_norm_impl_index: whether cuDNN's kernel is called), cuda/CUDAApplyUtils.cuh (CUDA_tensor_apply2, which only
// poisson still uses).
#include "dispatch/kernel_checks.h"

#include "dispatch/placement.h"
#include "runtime/device.h"
#include "runtime/memory.h"
#include "torch_versions.h"

#include <ATen/Context.h>

#include <iterator>
#include <string>
#include <unordered_map>
#include <utility>

namespace sim::kernel_checks {

bool is_mask(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kBool || tensor.scalar_type() == at::kByte;
}

bool is_masked_fill(const at::Tensor& self, const c10::IValue& indices, const at::Tensor& value) {
  if (value.numel() != 1 || !value.device().is_cpu()) {
    return false;
  }
  size_t masks = 0;
  for (const SIM_OPTIONAL<at::Tensor>& index : indices.toOptionalTensorList()) {
    if (index.has_value() && index->defined() &&
        (!is_mask(*index) || index->device() != self.device() || ++masks > 1)) {
      return false;
    }
  }
  return masks == 1;
}

namespace {

Placement check_masked_fill(const c10::FunctionSchema& /*schema*/, c10::ArrayRef<c10::IValue> arguments) {
  const auto& self = arguments[0].toTensor();
  const auto& mask = arguments[1].toTensor();
  if (arguments[2].isTensor()) {  // its value is read, so it may be on any device
    const auto dimensions = arguments[2].toTensor().dim();
    TORCH_CHECK(
        dimensions == 0, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ", dimensions,
        " dimension(s).");
    TORCH_CHECK(is_sim(self), "masked_fill_: Expected inputs to be on same device");
  }
  TORCH_CHECK(
      self.device() == mask.device(), "expected self and mask to be on the same device, but got mask on ",
      mask.device(), " and self on ", self.device());
  return self.device();
}

bool no_exemption(const c10::Argument& /*argument*/, const at::Tensor& /*tensor*/) {
  return false;
}

// The kernel copies indices to the device, and a value without dimensions.
Placement check_index_put(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments) {
  const auto& self = arguments[0].toTensor();
  const auto& value = arguments[2].toTensor();
  const bool accumulate = arguments[3].toBool();
  const bool is_copied = value.dim() == 0 || (!accumulate && is_masked_fill(self, arguments[1], value));
  if (is_sim(self) && (accumulate || at::globalContext().deterministicAlgorithms())) {
    TORCH_CHECK(
        is_copied || value.device() == self.device(), "expected device ", self.device(), " but got device ",
        value.device(), " for value tensor");
  }
  return check_iterator(schema, is_copied ? arguments.slice(0, 2) : arguments, &no_exemption);
}

// A value that is a tensor is only read, so it is not checked.
Placement check_index_fill(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments) {
  return check_iterator(schema, arguments.slice(0, 3), &no_exemption);
}

// Only the first tensor's device counts: the others may be on any device, or hold the offsets of a nested tensor.
Placement check_first(const c10::FunctionSchema& /*schema*/, c10::ArrayRef<c10::IValue> arguments) {
  return arguments[0].toTensor().device();
}

Placement check_where(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments) {
  return check_iterator(schema, arguments, [](const c10::Argument& argument, const at::Tensor& tensor) {
    return tensor.dim() == 0 && !is_written(argument);
  });
}

// The probabilities come first: they are copied to the result's device, on the CPU as well.
Placement check_bernoulli_out(const c10::FunctionSchema& /*schema*/, c10::ArrayRef<c10::IValue> arguments) {
  return arguments[2].toTensor().device();
}

// torchgen's check leaves out keyword-only arguments.
Placement check_searchsorted(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments) {
  const auto place = check_all_but(schema, arguments, "sorter");
  const auto& sorter = arguments[static_cast<size_t>(*schema.argumentIndexWithName("sorter"))];
  const auto boundaries = arguments[0].toTensor().device();
  TORCH_CHECK(
      !sorter.isTensor() || sorter.toTensor().device() == boundaries,
      "torch.searchsorted(): sorter and boundary tensors should have same device type, but got sorter tensor device "
      "type ",
      sorter.toTensor().device(), " and input value tensor device type ", boundaries);
  return place;
}

Placement check_set(const c10::FunctionSchema& /*schema*/, c10::ArrayRef<c10::IValue> arguments) {
  const auto mine = arguments[0].toTensor().device();
  const auto given = arguments[1].isTensor() ? arguments[1].toTensor().device() : arguments[1].toStorage().device();
  TORCH_CHECK(
      mine == given, "Attempted to set the storage of a tensor on device \"", mine,
      "\" to a storage on different device \"", given, "\".  This is no longer allowed; the devices must match.");
  return mine;
}

bool takes_cudnn_batch_norm(c10::ArrayRef<c10::IValue> arguments) {
  const auto is_given = [&](size_t at) { return arguments[at].isTensor() && arguments[at].toTensor().defined(); };
  const auto type = [&](size_t at) { return arguments[at].toTensor().scalar_type(); };
  const auto& input = arguments[0].toTensor();
  const bool training = arguments[5].toBool();
  if (!is_given(1) || !is_given(2) || input.dim() < 3 || input.size(0) > (training ? 880801 : 65535)) {
    return false;
  }
  const bool has_statistics = is_given(3) && is_given(4);
  return (has_statistics || (!is_given(3) && !is_given(4) && training)) && type(0) != at::kBFloat16 &&
      type(1) != at::kBFloat16 && (type(0) != at::kHalf || type(1) == at::kFloat);
}

Placement check_batch_norm(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments) {
  return takes_cudnn_batch_norm(arguments) ? check_as("wrapper_CUDA__cudnn_batch_norm", schema, arguments)
                                           : check_all_but(schema, arguments, "");
}

// A CPU tensor gets to CUDA's kernel because of the generator.
Placement check_poisson(const c10::FunctionSchema& /*schema*/, c10::ArrayRef<c10::IValue> arguments) {
  const auto place = arguments[0].toTensor().device();
  TORCH_CHECK(
      place.type() == kDevice,
      "CUDA_tensor_apply2: Expected tensors to have CUDA DeviceType, but got tensors with type ", place.type(), " and ",
      place.type());
  return place;
}

// Only one of LAPACK's drivers has a counterpart for CUDA (get_default_lstsq_driver).
Placement check_lstsq(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments) {
  const auto place = check_all_but(schema, arguments, "");
  const auto& driver = arguments[static_cast<size_t>(*schema.argumentIndexWithName("driver"))];
  TORCH_CHECK(
      driver.isNone() || driver.toStringRef() == "gels",
      "torch.linalg.lstsq: `driver` other than `gels` is not supported on CUDA");
  return place;
}

#if !SIM_TORCH_AT_LEAST(2, 6)
// CUDA sorts bools from 2.6 on. A median of all elements sorts, too: a single one as well, but no empty tensor.
Placement check_sort(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments) {
  const auto place = check_all_but(schema, arguments, "");
  const auto& self = arguments[0].toTensor();
  const bool sorts = schema.overload_name().empty() ? self.numel() > 0 : self.dim() > 0;
  TORCH_CHECK(!sorts || self.scalar_type() != at::kBool, "Sort currently does not support bool dtype on CUDA.");
  return place;
}
#endif

#if !SIM_TORCH_AT_LEAST(2, 3)
// Along a dimension only: that of all elements sorts, which has the type.
Placement check_median(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments) {
  const auto place = check_all_but(schema, arguments, "");
  TORCH_CHECK(
      arguments[0].toTensor().scalar_type() != at::kBFloat16, "\"median_out_impl\" not implemented for 'BFloat16'");
  return place;
}
#endif

// Constants: for a map's initializer list the compiler makes code that constructs and destroys each name.
constexpr std::pair<const char*, PlacementCheck> kChecks[] = {
    {"aten::masked_fill_.Scalar", &check_masked_fill},
    {"aten::masked_fill_.Tensor", &check_masked_fill},
    {"aten::_index_put_impl_", &check_index_put},
    {"aten::index_fill_.int_Scalar", &check_index_fill},
    {"aten::index_fill_.int_Tensor", &check_index_fill},
    {"aten::fill_.Tensor", &check_first},
    {"aten::copy_", &check_first},
    {"aten::copy_sparse_to_sparse_", &check_first},
    {"aten::_nested_view_from_buffer", &check_first},
    {"aten::where.self", &check_where},
    {"aten::where.self_out", &check_where},
    {"aten::bernoulli.out", &check_bernoulli_out},
    {"aten::bernoulli_.Tensor", &check_first},
    {"aten::searchsorted.Tensor", &check_searchsorted},
    {"aten::searchsorted.Tensor_out", &check_searchsorted},
    {"aten::searchsorted.Scalar", &check_searchsorted},
    {"aten::searchsorted.Scalar_out", &check_searchsorted},
    {"aten::native_batch_norm", &check_batch_norm},
    {"aten::poisson", &check_poisson},
    {"aten::linalg_lstsq", &check_lstsq},
    {"aten::linalg_lstsq.out", &check_lstsq},
#if !SIM_TORCH_AT_LEAST(2, 6)
    {"aten::sort.stable", &check_sort},
    {"aten::sort.values_stable", &check_sort},
    {"aten::argsort.stable", &check_sort},
    {"aten::median", &check_sort},
    {"aten::nanmedian", &check_sort},
#endif
#if !SIM_TORCH_AT_LEAST(2, 3)
    {"aten::median.dim", &check_median},
    {"aten::median.dim_values", &check_median},
    {"aten::nanmedian.dim", &check_median},
    {"aten::nanmedian.dim_values", &check_median},
#endif
    {"aten::set_.source_Tensor", &check_set},
    {"aten::set_.source_Storage", &check_set},
    {"aten::set_.source_Storage_storage_offset", &check_set},
};

}  // namespace

PlacementCheck kernel_check(const std::string& name) {
  static const std::unordered_map<std::string, PlacementCheck> checks(std::begin(kChecks), std::end(kChecks));
  const auto found = checks.find(name);
  return found == checks.end() ? nullptr : found->second;
}

}  // namespace sim::kernel_checks
