// While which statements of a kernel a buffer's elements are needed.
#pragma once
#include <map>

#include "ir/kernel/kernel.h"

namespace tw {

// The first and the last store of the kernel, counted in program order.
struct LiveSpan {
  int64_t first = 0, last = 0;
  bool meets(const LiveSpan& other) const { return first <= other.last && other.first <= last; }
};

// Of all buffers in a scope that some store reads or writes, by index. Buffers whose spans do not
// meet may be in one place. A buffer that is accessed in several iterations of a loop and around
// it is needed in all of the loop; so it is in all of the kernel where its first access is no store
// that runs whenever the others do, since an iteration might find what the one before it left.
std::map<int32_t, LiveSpan> live_spans(const Kernel& kernel, const std::string& scope);

}  // namespace tw
