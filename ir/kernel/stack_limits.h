// Limits of the stack that kernels may take. Worker threads have little (runtime/model.h).
#pragma once
#include <cstdint>

namespace tw {

inline constexpr int64_t kMaxStackBufferBytes = 32 << 10;  // one temp of scope stack or register
// All temps of scope stack of a kernel, but for those of threads of a device
inline constexpr int64_t kMaxStackBytes = 48 << 10;

}  // namespace tw
