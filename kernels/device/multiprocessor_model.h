// Constants of the cycle models for multiprocessors (kernels/device/tile_model.h, window_model.h).
#pragma once
#include <cstdint>

namespace tw {

inline constexpr int64_t kWarp = 32;  // threads that share their instructions
// Parts of a multiprocessor; each issues one warp's instruction a cycle
inline constexpr int64_t kPartitions = 4;
inline constexpr int64_t kRegistersTogether = 8;  // granularity of a thread's registers
inline constexpr int64_t kMostLatency = 1 << 20;  // limit in cycles; longer latencies count as this
inline constexpr int64_t kBarrier = 30;           // cycles of one barrier

inline int64_t parts_of(int64_t extent, int64_t size) { return (extent + size - 1) / size; }
inline int64_t whole_parts(int64_t extent, int64_t size) { return parts_of(extent, size) * size; }

}  // namespace tw
