// Registration of kernels under one dispatch key.
//
// The dispatcher is called without torch/library.h, which declares PyTorch's interface for extensions: parsing it, and
// the templates of its registrations, takes the compiler longer than this.
#pragma once

#include "torch_versions.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace sim {

// Registers at most one kernel for each operator. PyTorch's dispatcher uses the kernel that was registered last, so a
// second one would make the result depend on the order of the registrations. What is registered stays: the process ends
// with its kernels.
//
// Warnings are ignored meanwhile: a CUDA build has kernels of its own under the same keys, and PyTorch warns about each
// one that is replaced (ATen/core/dispatch/OperatorEntry.cpp).
class Registrar {
 public:
  explicit Registrar(c10::DispatchKey key) : key_(key) {}

  // `name` has no namespace. Throws c10::Error if it has one, or if the operator has a kernel already. PyTorch's
  // dispatcher shows the caller's file and line.
  void impl(
      std::string_view name, c10::KernelFunction&& kernel, const char* file = __builtin_FILE(),
      int line = __builtin_LINE()) {
    add(name, std::move(kernel), SIM_OPTIONAL<c10::impl::CppSignature>(), file, line);
  }

  // The same for a function. The dispatcher compares its C++ types with those of the operator's other kernels.
  template <class Result, class... Arguments>
  void impl(
      std::string_view name, Result (*kernel)(Arguments...), const char* file = __builtin_FILE(),
      int line = __builtin_LINE()) {
    add(name, c10::KernelFunction::makeFromUnboxedRuntimeFunction(kernel),
        c10::impl::CppSignature::make<Result(Arguments...)>(), file, line);
  }

  // The same for a function that is part of the type, TORCH_FN(function), of which PyTorch makes faster code.
  template <class Function, Function* kFunction>
  void impl(
      std::string_view name, c10::CompileTimeFunctionPointer<Function, kFunction> kernel,
      const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    add(name, c10::KernelFunction::makeFromUnboxedFunction(kernel), c10::impl::CppSignature::make<Function>(), file,
        line);
  }

  // The kernel of all operators that have none under the key. Throws c10::Error if the key has one.
  void fallback(c10::KernelFunction&& kernel, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    keep(c10::Dispatcher::singleton().registerFallback(key_, std::move(kernel), place(file, line)));
  }

  bool has_kernel(const std::string& name) const {
    return names_.count(name) != 0;
  }

 private:
  class IgnoreWarnings final : public c10::WarningHandler {
   public:
    void process(const c10::Warning& /*warning*/) override {}
  };

  static std::string place(const char* file, int line) {
    return std::string("registered at ") + file + ":" + std::to_string(line);
  }
  static void keep(c10::RegistrationHandleRAII&& registration) {
    new c10::RegistrationHandleRAII(std::move(registration));
  }

  // Not a template: a translation unit compiles it once, and not for each kernel's type.
  [[gnu::noinline]] void add(
      std::string_view name, c10::KernelFunction&& kernel, SIM_OPTIONAL<c10::impl::CppSignature> signature,
      const char* file, int line) {
    TORCH_CHECK(
        name.find("::") == std::string_view::npos, "the name of an operator with its namespace: ", std::string(name));
    TORCH_CHECK(
        names_.insert(std::string(name)).second, "two kernels are registered for the operator ", std::string(name));
    const auto dot = std::min(name.find('.'), name.size());
    c10::OperatorName op("aten::" + std::string(name.substr(0, dot)), std::string(name.substr(dot)).erase(0, 1));
    keep(
        c10::Dispatcher::singleton().registerImpl(
            std::move(op), key_, std::move(kernel), std::move(signature), nullptr, place(file, line)));
  }

  c10::DispatchKey key_;
  std::unordered_set<std::string> names_;
  IgnoreWarnings handler_;
  c10::WarningUtils::WarningHandlerGuard guard_{&handler_};
};

}  // namespace sim
