// Errors of CUDA's runtime, and the context that some of them end.
//
// Contracts held: c10/cuda/CUDAException.cpp and CUDAMiscFunctions.cpp for the words (a test asks libc10_cuda.so for
// them); CUDA_KERNEL_ASSERT in the files that are named below for what a kernel asserts. A kernel's assertion fails
// asynchronously: a later call raises the error, and the process can use no GPU from then on. Here the call itself
// raises, as with CUDA_LAUNCH_BLOCKING=1.
#include "runtime/cuda_errors.h"

#include "graphs/capture.h"
#include "torch_versions.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <iterator>
#include <string>
#include <unordered_map>
#include <utility>

namespace sim::cuda_errors {

namespace {

struct RuntimeError {
  int code;
  const char* name;
  const char* words;
};

constexpr std::array<RuntimeError, 8> kRuntimeErrors{{
    {kInitializationError, "cudaErrorInitializationError", "initialization error"},
    {kInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {kInvalidHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {kIllegalState, "cudaErrorIllegalState", "the operation cannot be performed in the present state"},
    {kDeviceAssert, "cudaErrorAssert", "device-side assert triggered"},
    {kCaptureUnsupported, "cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"},
    {kCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {kCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
}};

std::string help_for([[maybe_unused]] const RuntimeError& error) {
#if SIM_TORCH_AT_LEAST(2, 9)
  if (error.code == kInvalidDevice) {
    return "\nGPU device may be out of range, do you have enough GPUs?";
  }
  return std::string("\nSearch for `") + error.name +
      "' in https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for more information.";
#else
  return "";
#endif
}

bool is_blocking() {
  const char* value = std::getenv("CUDA_LAUNCH_BLOCKING");
  return value != nullptr && std::strcmp(value, "1") == 0;
}

std::string advice_for(const RuntimeError& error) {
  if (SIM_TORCH_AT_LEAST(2, 13) && error.code != kDeviceAssert) {
    return SIM_TORCH_AT_LEAST(2, 14) ? "" : "\nFor more detailed error information, run with CUDA_LOG_FILE=stderr";
  }
  if (is_blocking()) {
    return "";
  }
  return std::string(
             "\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below "
             "might be incorrect."
             "\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1") +
      (SIM_TORCH_AT_LEAST(2, 4) ? "" : ".");
}

std::string words_of(const RuntimeError& error) {
  return std::string("CUDA error: ") + error.words + help_for(error) + advice_for(error) + "\n" +
      (SIM_TORCH_AT_LEAST(2, 13) ? "" : "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n");
}

// The error code that ended this process's context; 0 while it can use its GPUs.
std::atomic<int> context_error{0};

// What a kernel asserts, and how the CPU's kernel begins to say that it does not hold.
struct Assertion {
  const char* file;
  const char* condition;
  const char* on_cpu;
};

constexpr const char* kOutOfBounds = " is out of bounds for dimension ";
constexpr const char* kInSelf = "index out of range in self";
constexpr Assertion kScatter{
    "ScatterGatherKernel.cu", "idx_dim >= 0 && idx_dim < index_size && \"index out of bounds\"", kOutOfBounds};
constexpr Assertion kIndex{
    "IndexKernel.cu", "-sizes[i] <= index && index < sizes[i] && \"index out of bounds\"", kOutOfBounds};
constexpr Assertion kTake{
    "IndexKernel.cu", "idx < numel && idx >= -numel && \"cuda_take_put_kernel() index out of bounds\"",
    "tried to access index "};
constexpr Assertion kTarget{"Loss.cu", "t >= 0 && t < n_classes", "Target "};

// Constants: for a map's initializer list the compiler makes code that constructs and destroys each name.
constexpr std::pair<const char*, Assertion> kAssertions[] = {
    {"aten::_index_put_impl", kIndex},
    {"aten::binary_cross_entropy",
     {"Loss.cu", "input_val >= zero && input_val <= one", "all elements of input should be between 0 and 1"}},
    {"aten::binary_cross_entropy",
     {"Loss.cu", "target_val >= zero && target_val <= one", "all elements of target should be between 0 and 1"}},
    {"aten::gather", kScatter},
    {"aten::index", kIndex},
    {"aten::index_add", {"Indexing.cu", "dstIndex < dstAddDimSize", kOutOfBounds}},
    {"aten::index_add", {"Indexing.cu", "dstIndex < dstAddDimSize", kInSelf}},
    {"aten::index_copy",
     {"IndexKernel.cu", "idx >= 0 && idx < self_dim_size && \"index_copy_(): index out of bounds\"", kOutOfBounds}},
    {"aten::index_fill",
     {"IndexKernel.cu", "idx >= -self_dim_size && idx < self_dim_size && \"Index out of bounds\"", kOutOfBounds}},
    {"aten::index_reduce", {"Indexing.cu", "dstIndex < dstAddDimSize", kInSelf}},
    {"aten::index_select", {"Indexing.cu", "srcIndex < srcSelectDimSize", kInSelf}},
    {"aten::nll_loss2d_forward", kTarget},
    {"aten::nll_loss_forward", kTarget},
    {"aten::put", kTake},
    {"aten::scatter", kScatter},
    {"aten::scatter_add", kScatter},
    {"aten::scatter_reduce", kScatter},
    {"aten::take", kTake},
};

// By operator, without the underscore of in-place operators.
const std::unordered_multimap<std::string, Assertion>& assertions() {
  static const std::unordered_multimap<std::string, Assertion> all(std::begin(kAssertions), std::end(kAssertions));
  return all;
}

// `torch._assert_async`, whose condition is the program's; `multinomial` asserts so since 2.5, and reads its numbers
// back before.
SIM_OPTIONAL<Assertion> asserted_by_program(const std::string& name, const char* words) {
  if (name == "aten::_assert_async" && std::strstr(words, "is ambiguous") == nullptr) {
    return Assertion{
        "TensorCompare.cu", std::strstr(words, "single nonzero value") != nullptr ? "input[0] != 0" : words, ""};
  }
  if (name == "aten::multinomial" && (SIM_TORCH_AT_LEAST(2, 5) || std::strstr(words, "(encountering ") != nullptr)) {
    for (const char* beginning : {"probability tensor contains", "invalid multinomial distribution"}) {
      if (std::strstr(words, beginning) == words) {
        return Assertion{"TensorCompare.cu", words, ""};
      }
    }
  }
  return {};
}

SIM_OPTIONAL<Assertion> assertion_of(std::string name, const char* words) {
  if (const auto found = asserted_by_program(name, words)) {
    return found;
  }
  if (name.back() == '_') {
    name.pop_back();
  }
  const auto range = assertions().equal_range(name);
  const auto found = std::find_if(
      range.first, range.second, [&](const auto& each) { return std::strstr(words, each.second.on_cpu) != nullptr; });
  return found == range.second ? SIM_OPTIONAL<Assertion>() : SIM_OPTIONAL<Assertion>(found->second);
}

}  // namespace

void throw_cuda_error(int code) {
  const auto* error =
      std::find_if(kRuntimeErrors.begin(), kRuntimeErrors.end(), [&](const auto& each) { return each.code == code; });
  TORCH_CHECK(error != kRuntimeErrors.end(), "not an error of the simulated CUDA runtime: ", code);
#if SIM_HAS_ACCELERATOR_ERROR
  throw c10::AcceleratorError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, code, words_of(*error));
#else
  TORCH_CHECK(false, words_of(*error));
#endif
}

int exchange_context_error(int code) {
  return context_error.exchange(code);
}

void check_context() {
  if (const int code = context_error.load(std::memory_order_relaxed)) {
    throw_cuda_error(code);
  }
}

void assert_on_device(const c10::FunctionSchema& schema, const c10::Error& error) {
  const std::string words = error.what_without_backtrace();
  if (const auto failed = assertion_of(schema.name(), words.c_str())) {
    std::cerr << "ATen/native/cuda/" << failed->file << ": simulated kernel of " << schema.name() << ": Assertion `"
              << failed->condition << "` failed. On the CPU: " << words << std::endl;
    exchange_context_error(kDeviceAssert);
    throw_cuda_error(kDeviceAssert);
  }
}

}  // namespace sim::cuda_errors
