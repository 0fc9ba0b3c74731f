// Candidates for measuring: a scheduled kernel becomes a library with one function. For one thread
// it runs on the caller, whatever its parallel loops say; for more they are shared out as in a
// program, by the pool of the measuring process.
#pragma once
#include "autotune/measure/reference.h"
#include "ir/kernel/bounds.h"
#include "ir/target.h"

namespace tw {

// Nothing is made of a kernel that is not shown to stay inside of its buffers. Errors: a target
// that nothing can be compiled for.
Expected<CandidateBuilder> candidate_builder(const Target& target, int threads = 1,
                                             Tables tables = Tables::ours);

}  // namespace tw
