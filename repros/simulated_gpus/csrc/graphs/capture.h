// Whether calls are being captured for a CUDA graph, and the errors of calls that a capture does not permit.
#pragma once

#include <c10/core/DispatchKey.h>

#include <string>

namespace sim::graph {

// Threads whose calls are captured include this key, and so do the threads of their backward. Its priority is below
// autograd and above every kernel, and no release of PyTorch has a kernel for it.
constexpr auto kCaptureKey = c10::DispatchKey::Fake;

// CUDA's numbers for errors of a capture (driver_types.h).
constexpr int kIllegalState = 401;
constexpr int kCaptureUnsupported = 900;
constexpr int kCaptureInvalidated = 901;
constexpr int kCapturedEvent = 907;

// Whether this thread's calls are being captured.
bool is_capturing();
// Throws CUDA's error for a call that a capture does not permit, which also ends the capture.
void refuse_in_capture();
// Throws what a CUDA generator does if it is asked for this while this thread captures.
void refuse_generator_in_capture(const std::string& attempt);

}  // namespace sim::graph

namespace sim {

using graph::is_capturing, graph::kCapturedEvent, graph::kCaptureInvalidated, graph::kCaptureKey,
    graph::kCaptureUnsupported, graph::kIllegalState, graph::refuse_generator_in_capture, graph::refuse_in_capture;

}  // namespace sim
