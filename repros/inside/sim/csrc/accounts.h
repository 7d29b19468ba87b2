// What every device's memory amounts to, and how much there is.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <mutex>

namespace sim {

struct Count {
  uint64_t now;    // in use
  uint64_t peak;   // most in use at once since the last `forget_peak`
  uint64_t taken;  // handed out since the start or the last `forget_taken`
};

struct Memory {
  Count bytes;
  Count blocks;
  uint64_t refused;  // requests for which there was no room
  uint64_t limit;    // bytes that the device has
};

class Account {
 public:
  explicit Account(c10::DeviceIndex index);

  // Throws c10::OutOfMemoryError when the device has no room for so many bytes more.
  void check_room(uint64_t bytes);
  void take(uint64_t bytes);
  // Throws it when bytes that have been taken go beyond the limit: a kernel has resized its result, and what it resized must
  // be as it says before anybody may hear of it.
  void check_taken(uint64_t bytes);
  void give_back(uint64_t bytes);

  Memory memory();
  void forget_peak();
  void forget_taken();
  void set_limit(uint64_t bytes);

 private:
  [[noreturn]] void refuse(uint64_t bytes, uint64_t in_use);

  std::mutex mutex_;
  c10::DeviceIndex index_;
  Memory memory_;
};

Account& account_of(c10::DeviceIndex index);

// Bytes that a device has unless a limit is set: REPROS_SIM_MEMORY, else what the machine has.
uint64_t device_bytes();

}  // namespace sim
