// Accounting of every device's memory: what is in use, and the limit.
#pragma once

#include "runtime/segments.h"

#include <c10/core/Device.h>

#include <cstdint>
#include <mutex>

namespace sim::accounts {

// A copy of what is known of a device's memory.
struct Memory {
  Usage usage;
  uint64_t refused = 0;  // allocations that exceeded the limit
  uint64_t retried = 0;  // allocations that had the cache released first
  uint64_t limit = 0;    // bytes that this process may reserve
};

class Account {
 public:
  explicit Account(c10::DeviceIndex index);

  // Counts `bytes`, null for none. Throws c10::OutOfMemoryError, and counts nothing, if they would exceed the limit.
  Piece* allocate(uint64_t bytes);
  // Counts `bytes` that a kernel has allocated already.
  Piece* add(uint64_t bytes);
  // Throws c10::OutOfMemoryError if what was added exceeds the limit: after a kernel resized its result, whose storage
  // must be consistent before the error is raised.
  void check_limit(const Piece* added);
  void free(Piece* piece);
  // Gives the driver what is cached.
  void release();

  Memory memory();
  void reset_peak();
  void reset_accumulated();
  void set_limit(uint64_t bytes);

 private:
  // Whether so many bytes more may be reserved, if need be once the cache is released.
  bool fits(uint64_t more);
  [[noreturn]] void throw_out_of_memory(uint64_t bytes);

  std::mutex mutex_;
  c10::DeviceIndex index_;
  Segments segments_;
  uint64_t refused_ = 0, retried_ = 0, limit_;
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

// Gives the driver what is cached of all devices. CUDA's allocator waits for all streams then, and counts how often.
void empty_cache();
uint64_t cache_emptied();

// A device's bytes unless a limit is set: those that were chosen (memory_size.py), else the machine's memory.
uint64_t device_bytes();
// To be called before a device is used.
void set_device_bytes(uint64_t bytes);

}  // namespace sim::accounts

namespace sim {

using accounts::Account, accounts::account_of, accounts::cache_emptied, accounts::device_bytes, accounts::empty_cache,
    accounts::Memory, accounts::set_device_bytes, accounts::Uncounted;

}  // namespace sim
