// How many threads of the host compute: called before a backward pass, and before a kernel of the host runs.
#pragma once

namespace sim::threads {

void note_threads();
void agree_on_threads();

}  // namespace sim::threads

namespace sim {

using threads::agree_on_threads, threads::note_threads;

}  // namespace sim
