// Accounting of each device's memory: the bytes in use, and the limit.
#pragma once

#include "runtime/segments.h"

#include <c10/core/Device.h>

#include <cstdint>
#include <mutex>

namespace sim::accounts {

// A snapshot of a device's memory statistics.
struct Memory {
  Usage usage;
  uint64_t refused = 0;  // allocations that exceeded the limit
  uint64_t retried = 0;  // allocations that had the cache released first
  uint64_t limit = 0;    // bytes that this process may reserve
};

class Account {
 public:
  explicit Account(c10::DeviceIndex index);

  // Counts `bytes`; returns null for 0. Throws c10::OutOfMemoryError, and counts nothing, if they would exceed the
  // limit.
  [[gnu::noinline]] Piece* allocate(uint64_t bytes);
  // Counts `bytes` that a kernel has allocated already.
  Piece* add(uint64_t bytes);
  // Throws c10::OutOfMemoryError if what was added exceeds the limit: after a kernel resized its result, whose storage
  // must be consistent before the error is raised.
  void check_limit(const Piece* added);
  void free(Piece* piece);
  // Returns cached segments to the driver.
  void release();

  Memory memory();
  void reset_peak();
  void reset_accumulated();
  void set_limit(uint64_t bytes);

 private:
  // Whether `more` bytes may be reserved, after the cache is released if necessary.
  [[gnu::noinline]] bool fits(uint64_t more);
  [[noreturn, gnu::noinline]] void throw_out_of_memory(uint64_t bytes);

  std::mutex mutex_;
  c10::DeviceIndex index_;
  Segments segments_;
  uint64_t refused_ = 0, retried_ = 0, limit_;
};

[[gnu::noinline]] Account& account_of(c10::DeviceIndex index);

// While one exists, allocations of its thread are not counted.
class Uncounted {
 public:
  Uncounted();
  ~Uncounted();
  Uncounted(const Uncounted&) = delete;
  Uncounted& operator=(const Uncounted&) = delete;

 private:
  bool before_;
};

// Returns the cached segments of all devices to the driver; the number of times, which CUDA's allocator counts as
// synchronizations of all streams.
void empty_cache();
uint64_t cache_emptied();

// The size of a device without a limit: the chosen one (memory_size.py), else the machine's memory.
uint64_t device_bytes();
// Must be called before a device is used.
void set_device_bytes(uint64_t bytes);

}  // namespace sim::accounts

namespace sim {

using accounts::Account, accounts::account_of, accounts::cache_emptied, accounts::device_bytes, accounts::empty_cache,
    accounts::Memory, accounts::set_device_bytes, accounts::Uncounted;

}  // namespace sim
