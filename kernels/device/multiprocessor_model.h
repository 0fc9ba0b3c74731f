// What models of cycles on a multiprocessor share (kernels/device/tile_model.h, window_model.h).
#pragma once
#include <cstdint>

namespace tw {

inline constexpr int64_t kWarp = 32;              // threads that take their instructions together
inline constexpr int64_t kPartitions = 4;         // of a multiprocessor: each starts one of a warp
inline constexpr int64_t kRegistersTogether = 8;  // given to a thread at one time
inline constexpr int64_t kMostLatency = 1 << 20;  // cycles; longer ones count as these
inline constexpr int64_t kBarrier = 30;           // cycles

inline int64_t parts_of(int64_t extent, int64_t size) { return (extent + size - 1) / size; }
inline int64_t whole_parts(int64_t extent, int64_t size) { return parts_of(extent, size) * size; }

}  // namespace tw
