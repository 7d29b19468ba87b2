// Registration of kernels under one dispatch key.
#pragma once

#include <c10/util/Exception.h>
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
  explicit Registrar(torch::Library& library) : library_(library) {}

  // `name` has no namespace. Throws c10::Error if it has one, or if the operator has a kernel already. PyTorch's
  // dispatcher shows the caller's file and line.
  template <class Kernel>
  void impl(
      const std::string& name, Kernel&& kernel, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    add(name, torch::CppFunction(std::forward<Kernel>(kernel)), file, line);
  }

  bool has_kernel(const std::string& name) const {
    return names_.count(name) != 0;
  }

 private:
  class IgnoreWarnings final : public c10::WarningHandler {
   public:
    void process(const c10::Warning& /*warning*/) override {}
  };

  // Not a template, as Library::impl is: a translation unit compiles it once, and not for each kernel's type.
  void add(const std::string& name, torch::CppFunction&& kernel, const char* file, int line) {
    TORCH_CHECK(name.find("::") == std::string::npos, "the name of an operator with its namespace: ", name);
    TORCH_CHECK(names_.insert(name).second, "two kernels are registered for the operator ", name);
    library_.impl(name.c_str(), std::move(kernel).debug(c10::str("registered at ", file, ":", line)));
  }

  torch::Library& library_;
  std::unordered_set<std::string> names_;
  IgnoreWarnings handler_;
  c10::WarningUtils::WarningHandlerGuard guard_{&handler_};
};

}  // namespace sim
