// Devices: how many there are; this thread's current device, and its current stream on each.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

namespace sim::device {

// CUDA's device type. It has no backend where PyTorch finds no GPU.
constexpr auto kDevice = c10::DeviceType::CUDA;

c10::DeviceIndex device_count();
c10::DeviceIndex current_device();
c10::DeviceIndex exchange_device(c10::DeviceIndex index);
c10::StreamId new_stream();
c10::StreamId current_stream(c10::DeviceIndex index);
void set_stream(c10::DeviceIndex index, c10::StreamId id);

// CUDA does not survive a fork: each process that is forked from now on calls `require`, which makes PyTorch initialise
// CUDA again (and refuse that), and its context has ended.
void poison_forks(void (*require)());

}  // namespace sim::device

namespace sim {

using device::current_device, device::current_stream, device::device_count, device::exchange_device, device::kDevice,
    device::new_stream, device::poison_forks, device::set_stream;

}  // namespace sim
