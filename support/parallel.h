// A loop over independent pieces of work on several threads.
#pragma once
#include <llvm/ADT/STLFunctionalExtras.h>

#include "support/diag.h"

namespace tw {
int threads_or_all(int asked);  // `asked`; 0: one for each processor
// Calls body(i) for every i below count, on up to `jobs` threads, the caller's among them. Returns
// the errors of all calls in the order of i.
Error parallel_for(int jobs, size_t count, llvm::function_ref<Error(size_t)> body);
}  // namespace tw
