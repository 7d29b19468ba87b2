// A device has a memory limit of its own and raises the error of CUDA's allocator beyond it, so running out of device
// memory can be reproduced on a machine with enough.
#include "runtime/accounts.h"

#include "runtime/cuda_errors.h"
#include "runtime/device.h"
#include "torch_versions.h"

#include <c10/util/Exception.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <iomanip>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace sim::accounts {

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

// The message of c10/cuda/CUDACachingAllocator.cpp in this version.
std::string cuda_words(int device, uint64_t bytes, uint64_t in_use, uint64_t reserved, uint64_t limit) {
  const auto total = format_bytes(device_bytes());
  const auto free = format_bytes(device_bytes() - std::min(device_bytes(), reserved));
  const auto allowed = limit < device_bytes() ? format_bytes(limit) + " allowed; " : std::string();
  const auto used = format_bytes(in_use), held = format_bytes(reserved), gpu = std::to_string(device);
  const auto tried = "CUDA out of memory. Tried to allocate " + format_bytes(size_of_segment(size_of_block(bytes)));
#if !SIM_TORCH_AT_LEAST(2, 1)
  return tried + " (GPU " + gpu + "; " + total + " total capacity; " + used + " already allocated; " + free +
      " free; " + allowed + held +
      " reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid "
      "fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF";
#else
  // The words of the releases that were read: 2.1.2, 2.2.2 to 2.9.1, 2.10.0, 2.11.0, 2.15.0.
#if SIM_TORCH_AT_LEAST(2, 11)
  const std::string has = " has a total capacity of ", setting = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
                    place =
                        " (https://docs.pytorch.org/docs/stable/notes/"
                        "cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)";
#elif SIM_TORCH_AT_LEAST(2, 10)
  const std::string has = " has a total capacity of ", setting = "PYTORCH_ALLOC_CONF=expandable_segments:True",
                    place = " (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)";
#elif SIM_TORCH_AT_LEAST(2, 2)
  const std::string has = " has a total capacity of ", setting = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
                    place = " (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)";
#else
  const std::string has = " has a total capacty of ", setting = "max_split_size_mb",
                    place = "and PYTORCH_CUDA_ALLOC_CONF";
#endif
  return tried + ". GPU " + gpu + has + total + " of which " + free +
      " is free. Including non-PyTorch memory, this process has " + held + " memory in use. " + allowed +
      "Of the allocated memory " + used + " is allocated by PyTorch, and " + format_bytes(reserved - in_use) +
      " is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting " + setting +
      " to avoid fragmentation.  See documentation for Memory Management " + place;
#endif
}

std::atomic<uint64_t> chosen_bytes{0};
std::atomic<uint64_t> times_emptied{0};

}  // namespace

void set_device_bytes(uint64_t bytes) {
  chosen_bytes = bytes;
}

uint64_t device_bytes() {
  if (const uint64_t chosen = chosen_bytes) {
    return chosen;
  }
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
}

uint64_t cache_emptied() {
  return times_emptied;
}

Account::Account(c10::DeviceIndex index) : index_(index), limit_(device_bytes()) {}

void Account::throw_out_of_memory(uint64_t bytes) {
  ++refused_;
  const auto in_use = segments_.usage.bytes[0].current, reserved = segments_.reserved();
  TORCH_CHECK_WITH(OutOfMemoryError, false, cuda_words(index_, bytes, in_use, reserved, limit_));
}

bool Account::fits(uint64_t more) {
  const auto has_room = [&] { return segments_.reserved() + more <= limit_; };
  if (has_room()) {
    return true;
  }
  segments_.release();
  ++retried_;
  return has_room();
}

Piece* Account::allocate(uint64_t bytes) {
  constexpr uint64_t kExabyte = uint64_t{1} << 60;  // c10/cuda/CUDACachingAllocator.cpp, one_exa_bytes
  TORCH_CHECK_WITH(OutOfMemoryError, bytes < kExabyte, "CUDA out of memory. Tried to allocate more than 1EB memory.");
  if (bytes == 0) {
    return nullptr;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (auto* piece = segments_.take(bytes)) {
    return piece;
  }
  if (!fits(size_of_segment(size_of_block(bytes)))) {
    throw_out_of_memory(bytes);
  }
  return segments_.take_new(bytes);
}

Piece* Account::add(uint64_t bytes) {
  if (bytes == 0) {
    return nullptr;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  auto* piece = segments_.take(bytes);
  return piece != nullptr ? piece : segments_.take_new(bytes);
}

void Account::check_limit(const Piece* added) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (added != nullptr && added->is_new && !fits(0)) {
    throw_out_of_memory(added->requested);
  }
}

void Account::free(Piece* piece) {
  if (piece != nullptr) {
    const std::lock_guard<std::mutex> lock(mutex_);
    segments_.give_back(piece);
  }
}

void Account::release() {
  const std::lock_guard<std::mutex> lock(mutex_);
  segments_.release();
}

Memory Account::memory() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return {segments_.usage, refused_, retried_, limit_};
}

void Account::reset_peak() {
  const std::lock_guard<std::mutex> lock(mutex_);
  segments_.usage.reset_peak();
}

void Account::reset_accumulated() {
  const std::lock_guard<std::mutex> lock(mutex_);
  segments_.usage.reset_accumulated();
  refused_ = retried_ = 0;
}

void Account::set_limit(uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  limit_ = bytes;
}

namespace {

thread_local bool is_uncounted = false;

}  // namespace

Uncounted::Uncounted() : before_(std::exchange(is_uncounted, true)) {}

Uncounted::~Uncounted() {
  is_uncounted = before_;
}

// Never destroyed: tensors outlive static objects when the interpreter ends.
Account& account_of(c10::DeviceIndex index) {
  static auto* const accounts = [] {
    auto* all = new std::vector<std::unique_ptr<Account>>;
    for (c10::DeviceIndex each = 0; each < device_count(); ++each) {
      all->push_back(std::make_unique<Account>(each));
    }
    return all;
  }();
  if (is_uncounted) {
    static auto* const none = [] {
      auto* account = new Account(0);
      account->set_limit(std::numeric_limits<uint64_t>::max());
      return account;
    }();
    return *none;
  }
  if (static_cast<size_t>(index) >= accounts->size()) {
    throw_cuda_error(kInvalidDevice);
  }
  return *(*accounts)[static_cast<size_t>(index)];
}

void empty_cache() {
  for (c10::DeviceIndex each = 0; each < device_count(); ++each) {
    account_of(each).release();
  }
  ++times_emptied;
}

}  // namespace sim::accounts
