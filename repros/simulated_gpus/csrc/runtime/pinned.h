// Host memory that reports itself as pinned.
#pragma once

#include "registrar.h"

#include <c10/core/Allocator.h>

#include <cstddef>
#include <cstdint>

namespace sim::pinned {

c10::Allocator* pinned_allocator();
bool is_pinned(const void* pointer);
// `cudaHostRegister` and its reverse; false if the memory is registered already, or is not.
bool register_host(uintptr_t address, size_t bytes);
bool unregister_host(uintptr_t address);
// Registers `is_pinned` and `_pin_memory`.
void register_kernels(Registrar& registrar);

}  // namespace sim::pinned

namespace sim {

using pinned::is_pinned, pinned::pinned_allocator, pinned::register_host, pinned::unregister_host;

}  // namespace sim
