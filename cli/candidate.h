// Candidates for measuring: a scheduled kernel becomes a library with one function. The function runs on the thread that calls it, whatever its
// parallel loops say: what is timed is the code of one thread.
#pragma once
#include "autotune/measure/reference.h"
#include "ir/target.h"

namespace tw {

// Errors: a target that nothing can be compiled for.
Expected<CandidateBuilder> candidate_builder(const Target& target);

}  // namespace tw
