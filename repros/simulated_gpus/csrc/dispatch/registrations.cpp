// The operators that run on the host: all that have no kernel of this device's own.
#include "dispatch/composites.h"
#include "dispatch/fallback.h"

#include <torch/library.h>

#include <string>

namespace sim {

namespace {

// Gives run_on_host to the operators that have a kernel for tensors of a layout: a CPU build has none for CUDA's, those
// of a CUDA build ask the driver.
void register_layout(torch::Library& library, c10::DispatchKey cpu, c10::DispatchKey cuda) {
  for_each_operator([&](const c10::OperatorHandle& op, const std::string& name) {
    if (op.hasKernelForDispatchKey(cpu) || op.hasKernelForDispatchKey(cuda)) {
      library.impl(name.c_str(), torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
    }
  });
}

}  // namespace

TORCH_LIBRARY_IMPL(_, CUDA, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
}

TORCH_LIBRARY_IMPL(_, SparseCUDA, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
}

TORCH_LIBRARY_IMPL(aten, SparseCUDA, library) {
  register_layout(library, c10::DispatchKey::SparseCPU, c10::DispatchKey::SparseCUDA);
}

TORCH_LIBRARY_IMPL(_, NestedTensorCUDA, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
}

TORCH_LIBRARY_IMPL(aten, NestedTensorCUDA, library) {
  register_layout(library, c10::DispatchKey::NestedTensorCPU, c10::DispatchKey::NestedTensorCUDA);
}

// Operators without a derivative (c10d::allreduce_) must pass through autograd. Early versions register no fallback for
// this device (2.1 and 2.2 do not, 2.13 does); registering a second one raises, so check first.
TORCH_LIBRARY_IMPL(_, AutogradCUDA, library) {
  if (!c10::Dispatcher::singleton().hasBackendFallbackForDispatchKey(c10::DispatchKey::AutogradCUDA)) {
    library.fallback(torch::CppFunction::makeFallthrough());
  }
}

}  // namespace sim
