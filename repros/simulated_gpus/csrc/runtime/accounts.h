// Accounting of every device's memory: what is in use, and the limit.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <mutex>

namespace sim {

struct Count {
  uint64_t current;    // in use
  uint64_t peak;       // most in use at once since the last `reset_peak`
  uint64_t allocated;  // allocated since the start or the last `reset_allocated`
};

struct Memory {
  Count bytes;      // as the allocator counts them
  Count requested;  // as they were asked for
  Count blocks;
  uint64_t refused;  // allocations that exceeded the limit
  uint64_t limit;    // bytes that the device has
};

class Account {
 public:
  explicit Account(c10::DeviceIndex index);

  // Counts `bytes`. Throws c10::OutOfMemoryError, and counts nothing, if they would exceed the limit.
  void allocate(uint64_t bytes);
  // Counts `bytes` that a kernel has allocated already.
  void add(uint64_t bytes);
  // Throws c10::OutOfMemoryError if `bytes`, which are counted, exceed the limit: after a kernel resized its result,
  // whose storage must be consistent before the error is raised.
  void check_limit(uint64_t bytes);
  void free(uint64_t bytes);

  Memory memory();
  void reset_peak();
  void reset_allocated();
  void set_limit(uint64_t bytes);

 private:
  void add_locked(uint64_t bytes, uint64_t block);
  [[noreturn]] void throw_out_of_memory(uint64_t bytes, uint64_t in_use);

  std::mutex mutex_;
  c10::DeviceIndex index_;
  Memory memory_;
};

Account& account_of(c10::DeviceIndex index);

// While one exists, what its thread allocates is counted for no device.
class Uncounted {
 public:
  Uncounted();
  ~Uncounted();
  Uncounted(const Uncounted&) = delete;
  Uncounted& operator=(const Uncounted&) = delete;

 private:
  bool before_;
};

// Nothing is cached. CUDA's allocator waits for all streams when its cache is emptied, and counts how often.
void empty_cache();
uint64_t cache_emptied();

// A device's bytes unless a limit is set: those that were chosen (memory_size.py), else the machine's memory.
uint64_t device_bytes();
// To be called before a device is used.
void set_device_bytes(uint64_t bytes);

}  // namespace sim
