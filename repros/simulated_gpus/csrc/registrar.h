// Registration of kernels under one dispatch key.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Exception.h>
#include <torch/csrc/jit/frontend/function_schema_parser.h>
#include <torch/library.h>

#include <string>
#include <unordered_set>
#include <utility>

namespace sim {

// Registers at most one kernel for each operator. PyTorch's dispatcher uses the kernel that was registered last, so a
// second one would make the result depend on the order of the registrations.
//
// Warnings are ignored meanwhile: a CUDA build has kernels of its own under the same keys, and PyTorch warns about each
// one that is replaced (ATen/core/dispatch/OperatorEntry.cpp).
class Registrar {
 public:
  // `key` is the library's.
  Registrar(torch::Library& library, c10::DispatchKey key) : library_(library), key_(key) {}

  // `name` has no namespace. Throws c10::Error if it has one, or if the operator has a kernel already. PyTorch's
  // dispatcher shows the caller's file and line.
  void impl(
      const std::string& name, torch::CppFunction&& kernel, const char* file = __builtin_FILE(),
      int line = __builtin_LINE()) {
    note(name);
    library_.impl(name.c_str(), std::move(kernel).debug(c10::str("registered at ", file, ":", line)));
  }

  // The same for a function. The dispatcher compares its C++ types with those of the operator's other kernels; a
  // schema, which Library::impl would infer from them, takes the compiler as long as the kernel.
  template <class Result, class... Arguments>
  void impl(
      const std::string& name, Result (*kernel)(Arguments...), const char* file = __builtin_FILE(),
      int line = __builtin_LINE()) {
    add(name, c10::KernelFunction::makeFromUnboxedRuntimeFunction(kernel),
        c10::impl::CppSignature::make<Result(Arguments...)>(), file, line);
  }

  // The same for a function that is part of the type, TORCH_FN(function), of which PyTorch makes faster code.
  template <class Function, Function* kFunction>
  void impl(
      const std::string& name, c10::CompileTimeFunctionPointer<Function, kFunction> kernel,
      const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    add(name, c10::KernelFunction::makeFromUnboxedFunction(kernel), c10::impl::CppSignature::make<Function>(), file,
        line);
  }

  bool has_kernel(const std::string& name) const {
    return names_.count(name) != 0;
  }

 private:
  class IgnoreWarnings final : public c10::WarningHandler {
   public:
    void process(const c10::Warning& /*warning*/) override {}
  };

  // Not a template: a translation unit compiles it once, and not for each kernel's type.
  void add(
      const std::string& name, c10::KernelFunction&& kernel, c10::impl::CppSignature signature, const char* file,
      int line) {
    note(name);
    // Never destroyed: the process ends with its kernels.
    new c10::RegistrationHandleRAII(
        c10::Dispatcher::singleton().registerImpl(
            torch::jit::parseName("aten::" + name), key_, std::move(kernel), signature, nullptr,
            c10::str("registered at ", file, ":", line)));
  }

  void note(const std::string& name) {
    TORCH_CHECK(name.find("::") == std::string::npos, "the name of an operator with its namespace: ", name);
    TORCH_CHECK(names_.insert(name).second, "two kernels are registered for the operator ", name);
  }

  torch::Library& library_;
  c10::DispatchKey key_;
  std::unordered_set<std::string> names_;
  IgnoreWarnings handler_;
  c10::WarningUtils::WarningHandlerGuard guard_{&handler_};
};

}  // namespace sim
