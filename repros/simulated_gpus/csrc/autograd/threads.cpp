// How many threads of the host compute a backward pass: as many as the main thread has when it begins, so that they add
// in the CPU's order.
//
// On the CPU the caller's thread runs backward. For a GPU a worker thread of autograd does, with the number of threads
// that any thread set last (ATen/ParallelOpenMP.cpp): a DataLoader that pins memory sets 1 for its own thread.
#include "autograd/threads.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/graph_task.h>

#include <atomic>
#include <thread>

namespace sim::threads {

namespace {

const std::thread::id main_thread = std::this_thread::get_id();
std::atomic<int> threads_of_main{0};

}  // namespace

void note_threads() {
  if (std::this_thread::get_id() == main_thread) {
    threads_of_main.store(at::get_num_threads(), std::memory_order_relaxed);
  }
}

void agree_on_threads() {
  if (torch::autograd::get_current_graph_task_id() == -1 || std::this_thread::get_id() == main_thread) {
    return;
  }
  const int wanted = threads_of_main.load(std::memory_order_relaxed);
  if (wanted > 0 && wanted != at::get_num_threads()) {
    at::set_num_threads(wanted);
  }
}

}  // namespace sim::threads
