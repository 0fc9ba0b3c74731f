// Explains why a log's records are of no use for a model.
#pragma once
#include <set>
#include <string>

#include "autotune/log.h"

namespace tw {

// A sentence about the records of these tasks that have another target, number of threads or
// version of the schedule language, and about where they come from; "": there are none
Expected<std::string> unused_records(TuningLog& log, const std::set<std::string>& tasks,
                                     const std::set<std::string>& targets, int threads);

}  // namespace tw
