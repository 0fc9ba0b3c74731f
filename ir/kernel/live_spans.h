// The stretch of a kernel's program during which a buffer's elements are needed.
#pragma once
#include <map>

#include "ir/kernel/kernel.h"

namespace tw {

// The first and the last store that need the buffer, counted in program order
struct LiveSpan {
  int64_t first = 0, last = 0;
  bool meets(const LiveSpan& other) const { return first <= other.last && other.first <= last; }
};

// The spans of the buffers in a scope that some store accesses, by buffer index. Buffers whose
// spans do not meet may share memory. A buffer that is accessed both in a loop's iterations and
// outside the loop is needed in the whole loop. It is needed in the whole kernel unless its first
// access is a store that runs whenever the others do: an iteration might otherwise read what an
// earlier one left.
std::map<int32_t, LiveSpan> live_spans(const Kernel& kernel, const std::string& scope);

}  // namespace tw
