// Makes the error for a kernel that the device cannot run.
#pragma once
#include "support/diag.h"

namespace tw::vdla {

template <class... Args>
Error unsupported(const char* format, Args&&... args) {
  return make_error(DiagCode::unsupported, format, std::forward<Args>(args)...);
}

}  // namespace tw::vdla
