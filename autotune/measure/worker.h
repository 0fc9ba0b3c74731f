// The process that candidates run in: takes jobs from a socket, one after the other, until it is
// closed. It may die of any job; the other side (autotune/measure/local.h) starts another one.
#pragma once
#include <string_view>

namespace tw {

// Of programs that can be the process: PROGRAM measure-worker CORE,CORE.. (a thread on each), with
// the socket as standard input.
inline constexpr std::string_view kMeasureWorker = "measure-worker";
bool is_measure_worker(int argc, const char* const* argv);
// The process's exit status. To be called before anything else sets up signals or threads. No core:
// one thread that is not pinned.
int measure_worker(const char* const* argv);

}  // namespace tw
