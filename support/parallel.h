// A loop over independent pieces of work on several threads.
#pragma once
#include <llvm/ADT/STLFunctionalExtras.h>

#include "support/diag.h"

namespace tw {
int threads_or_all(int asked);  // itself; 0: one a processor
// body(i) for every i below count, on up to `jobs` threads, the caller's among them. Errors: all
// that there are, in the order of i.
Error parallel_for(int jobs, size_t count, llvm::function_ref<Error(size_t)> body);
}  // namespace tw
