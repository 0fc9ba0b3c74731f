// Candidates for measuring: a scheduled kernel becomes a library with one function. With one thread
// it runs on the caller, whatever its parallel loops say. With more, the pool of the measuring
// process shares these loops out as in a program.
#pragma once
#include "autotune/measure/reference.h"
#include "ir/kernel/bounds.h"
#include "ir/target.h"

namespace tw {

// Refuses kernels that are not shown to stay inside of their buffers. Errors: a target that nothing
// can be compiled for.
Expected<CandidateBuilder> candidate_builder(const Target& target, int threads = 1,
                                             Tables tables = Tables::ours);

}  // namespace tw
