// The process in which candidates run. It takes jobs from a socket, one after the other, until the
// socket closes. Any job may kill it; the other side (autotune/measure/local.h) then starts another
// one.
#pragma once
#include <string_view>

namespace tw {

// The first argument for a program that can be this process. It runs as PROGRAM measure-worker
// CORE,CORE.. (with a thread on each core), with the socket as standard input.
inline constexpr std::string_view kMeasureWorker = "measure-worker";
bool is_measure_worker(int argc, const char* const* argv);
// Returns the process's exit status. The program calls it before anything sets up signals or
// threads. Without cores it has one thread, not pinned.
int measure_worker(const char* const* argv);

}  // namespace tw
