// A device has a memory limit of its own and raises the error of CUDA's allocator beyond it, so running out of device memory
// can be reproduced on a machine with enough.
#include "accounts.h"

#include "sim.h"

#include <c10/util/Exception.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <iomanip>
#include <sstream>
#include <string>

namespace sim {

namespace {

// In the format of CUDA's allocator: "2.00 GiB".
std::string format_bytes(uint64_t bytes) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(2);
  if (bytes >= uint64_t{1} << 30) {
    text << static_cast<double>(bytes) / (1 << 30) << " GiB";
  } else if (bytes >= uint64_t{1} << 20) {
    text << static_cast<double>(bytes) / (1 << 20) << " MiB";
  } else if (bytes >= uint64_t{1} << 10) {
    text << static_cast<double>(bytes) / (1 << 10) << " KiB";
  } else {
    text << bytes << " bytes";
  }
  return text.str();
}

void add(Count& count, uint64_t amount) {
  count.current += amount;
  count.allocated += amount;
  count.peak = std::max(count.peak, count.current);
}

}  // namespace

uint64_t device_bytes() {
  const char* text = std::getenv("REPROS_SIM_MEMORY");
  if (text == nullptr || *text == '\0') {
    return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
  }
  char* end = nullptr;
  const unsigned long long bytes = std::strtoull(text, &end, 10);
  TORCH_CHECK(*end == '\0' && *text != '-', "REPROS_SIM_MEMORY must be a number of bytes, not '", text, "'");
  return bytes;
}

Account::Account(c10::DeviceIndex index) : index_(index), memory_{{}, {}, 0, device_bytes()} {}

void Account::throw_out_of_memory(uint64_t bytes, uint64_t in_use) {
  ++memory_.refused;
  TORCH_CHECK_WITH(
      OutOfMemoryError, false, "sim out of memory. Tried to allocate ", format_bytes(bytes), ". Device ",
      static_cast<int>(index_), " has a total capacity of ", format_bytes(memory_.limit), " of which ",
      format_bytes(memory_.limit - std::min(memory_.limit, in_use)), " is free. Of the allocated memory ", format_bytes(in_use),
      " is allocated by PyTorch.");
}

void Account::check_room(uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (memory_.bytes.current + bytes > memory_.limit) {
    throw_out_of_memory(bytes, memory_.bytes.current);
  }
}

void Account::allocate(uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  add(memory_.bytes, bytes);
  add(memory_.blocks, 1);
}

void Account::check_limit(uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (memory_.bytes.current > memory_.limit) {
    throw_out_of_memory(bytes, memory_.bytes.current - bytes);
  }
}

void Account::free(uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  memory_.bytes.current -= bytes;
  --memory_.blocks.current;
}

Memory Account::memory() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return memory_;
}

void Account::reset_peak() {
  const std::lock_guard<std::mutex> lock(mutex_);
  memory_.bytes.peak = memory_.bytes.current;
  memory_.blocks.peak = memory_.blocks.current;
}

void Account::reset_allocated() {
  const std::lock_guard<std::mutex> lock(mutex_);
  memory_.bytes.allocated = memory_.bytes.current;
  memory_.blocks.allocated = memory_.blocks.current;
  memory_.refused = 0;
}

void Account::set_limit(uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  memory_.limit = bytes;
}

// Never destroyed: tensors outlive static objects when the interpreter ends.
Account& account_of(c10::DeviceIndex index) {
  static auto* const accounts = [] {
    auto* all = new std::deque<Account>;
    for (c10::DeviceIndex each = 0; each < device_count(); ++each) {
      all->emplace_back(each);
    }
    return all;
  }();
  return accounts->at(static_cast<size_t>(index));
}

}  // namespace sim
