// Why records of a log say nothing of a model here.
#pragma once
#include <set>
#include <string>

#include "autotune/log.h"

namespace tw {

// A sentence about records of these tasks that are not of this key's target, threads and version of
// the language, and where they come from; "": there are none.
Expected<std::string> unused_records(TuningLog& log, const std::set<std::string>& tasks,
                                     const std::set<std::string>& targets, int threads);

}  // namespace tw
