// Host memory that reports itself as pinned.
#pragma once

#include <c10/core/Allocator.h>

#include <cstddef>
#include <cstdint>

namespace sim {

c10::Allocator* pinned_allocator();
bool is_pinned(const void* pointer);
// `cudaHostRegister` and its reverse; false if the memory is registered already, or is not.
bool register_host(uintptr_t address, size_t bytes);
bool unregister_host(uintptr_t address);

}  // namespace sim
