// Makes candidates of a task: a variant's kernel with a schedule applied, from a point of a space
// or from any schedule.
#pragma once
#include "autotune/search.h"
#include "autotune/task.h"

namespace tw {

Expected<Candidate> candidate_of(const Task& task, const Target& target, const Space& space,
                                 const Point& point);
Expected<Candidate> candidate_of(const Task& task, const Target& target, int variant,
                                 Schedule schedule, const Point& point = {-1, {}});

// From a lowered kernel alone, whose parameters lie as they are
Expected<Candidate> candidate_of(const Kernel& lowered, const Target& target, Schedule schedule,
                                 const Point& point = {-1, {}});

// Errors: with unrolled loops written out, the candidate has more operations than `most`.
Error check_code_size(const Candidate& candidate, const Target& target, int64_t most);

}  // namespace tw
