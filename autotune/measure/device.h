// The machine that measures: its fingerprint for the log, and its caches, from /proc/cpuinfo and
// sysfs. Elsewhere than on Linux the answers are 0 and "unknown".
#pragma once
#include <cstdint>
#include <string>

namespace tw {

// "Intel(R) Xeon(R) Processor, 2 cores, L1 48K, L2 2048K, L3 491520K, features 0123456789abcdef"
std::string device_fingerprint();
int64_t cache_bytes(int level);  // bytes of a data cache; 0: none or unknown
// Bytes of weights that pass between two uses of a weight in a network: twice the last cache, but
// at least four times the second level, and at most 64 MiB, as much as usual networks have.
int64_t cold_bytes();

}  // namespace tw
