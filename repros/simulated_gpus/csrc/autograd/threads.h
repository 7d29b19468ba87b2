// How many threads of the host compute: called before a backward pass, and before a kernel of the host runs.
#pragma once

namespace sim {

void note_threads();
void agree_on_threads();

}  // namespace sim
