// The machine that measures: its name for the log and its caches, from /proc/cpuinfo and sysfs.
// Linux only; 0 and "unknown" elsewhere.
#pragma once
#include <cstdint>
#include <string>

namespace tw {

// "Intel(R) Xeon(R) Processor, 2 cores, L1 48K, L2 2048K, L3 491520K, features 0123456789abcdef"
std::string device_fingerprint();
int64_t cache_bytes(int level);  // of data; 0: there is none, or nobody says
// So many bytes of weights pass between two uses of one in a network: twice the last cache, but at
// least four times the second level and at most 64 MiB, as much as usual networks have.
int64_t cold_bytes();

}  // namespace tw
