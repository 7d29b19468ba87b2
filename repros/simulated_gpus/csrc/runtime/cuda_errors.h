// Errors of CUDA's runtime, by error code (driver_types.h).
#pragma once

#include <ATen/core/function_schema.h>
#include <c10/util/Exception.h>

namespace sim::cuda_errors {

constexpr int kInitializationError = 3;
constexpr int kInvalidDevice = 101;
constexpr int kInvalidHandle = 400;
constexpr int kDeviceAssert = 710;
// Throws PyTorch's exception for an error code of the runtime.
[[noreturn, gnu::noinline]] void throw_cuda_error(int code);
// Sets the error code that ended this process's context (0: none) and returns the previous one; `check_context` throws
// it, if there is one.
int exchange_context_error(int code);
void check_context();
// Throws `device-side assert triggered`, and ends the context, if CUDA's kernel asserts the condition for which the
// CPU's kernel raised `error`.
void assert_on_device(const c10::FunctionSchema& schema, const c10::Error& error);

}  // namespace sim::cuda_errors

namespace sim {

using cuda_errors::assert_on_device, cuda_errors::check_context, cuda_errors::exchange_context_error,
    cuda_errors::kDeviceAssert, cuda_errors::kInitializationError, cuda_errors::kInvalidDevice,
    cuda_errors::kInvalidHandle, cuda_errors::throw_cuda_error;

}  // namespace sim
