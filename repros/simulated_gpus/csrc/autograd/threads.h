// The number of intra-op threads: noted before a backward pass, applied before a CPU kernel runs.
#pragma once

namespace sim::threads {

void note_threads();
void agree_on_threads();

}  // namespace sim::threads

namespace sim {

using threads::agree_on_threads, threads::note_threads;

}  // namespace sim
