// The accounts. A device's memory ends where its limit says, with the error that CUDA's allocator raises, so that a program
// that runs out of memory can be tried on a machine that does not.
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

// As CUDA's allocator words it: "2.00 GiB".
std::string in_words(uint64_t bytes) {
  std::ostringstream words;
  words << std::fixed << std::setprecision(2);
  if (bytes >= uint64_t{1} << 30) {
    words << static_cast<double>(bytes) / (1 << 30) << " GiB";
  } else if (bytes >= uint64_t{1} << 20) {
    words << static_cast<double>(bytes) / (1 << 20) << " MiB";
  } else if (bytes >= uint64_t{1} << 10) {
    words << static_cast<double>(bytes) / (1 << 10) << " KiB";
  } else {
    words << bytes << " bytes";
  }
  return words.str();
}

void add(Count& count, uint64_t amount) {
  count.now += amount;
  count.taken += amount;
  count.peak = std::max(count.peak, count.now);
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

void Account::refuse(uint64_t bytes, uint64_t in_use) {
  ++memory_.refused;
  TORCH_CHECK_WITH(
      OutOfMemoryError, false, "sim out of memory. Tried to allocate ", in_words(bytes), ". Device ", static_cast<int>(index_),
      " has a total capacity of ", in_words(memory_.limit), " of which ", in_words(memory_.limit - std::min(memory_.limit, in_use)),
      " is free. Of the allocated memory ", in_words(in_use), " is allocated by PyTorch.");
}

void Account::check_room(uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (memory_.bytes.now + bytes > memory_.limit) {
    refuse(bytes, memory_.bytes.now);
  }
}

void Account::take(uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  add(memory_.bytes, bytes);
  add(memory_.blocks, 1);
}

void Account::check_taken(uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (memory_.bytes.now > memory_.limit) {
    refuse(bytes, memory_.bytes.now - bytes);
  }
}

void Account::give_back(uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  memory_.bytes.now -= bytes;
  --memory_.blocks.now;
}

Memory Account::memory() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return memory_;
}

void Account::forget_peak() {
  const std::lock_guard<std::mutex> lock(mutex_);
  memory_.bytes.peak = memory_.bytes.now;
  memory_.blocks.peak = memory_.blocks.now;
}

void Account::forget_taken() {
  const std::lock_guard<std::mutex> lock(mutex_);
  memory_.bytes.taken = memory_.bytes.now;
  memory_.blocks.taken = memory_.blocks.now;
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
