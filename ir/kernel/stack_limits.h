// Limits of the stack that kernels may take. Worker threads have little (runtime/model.h).
#pragma once
#include <cstdint>

namespace tw {

inline constexpr int64_t kMaxStackBufferBytes = 32 << 10;  // one temp of scope stack or register
inline constexpr int64_t kMaxStackBytes = 48 << 10;        // all temps of scope stack of a kernel

}  // namespace tw
