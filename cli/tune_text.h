// What tune and compile --tune say of their results.
#pragma once
#include <string>
#include <vector>

#include "cli/text/text_width.h"
#include "driver/tune/tuned_compile.h"
#include "support/json.h"

namespace tw {

// "measured again: 5 gains stand, 2 do not; 3 were not, for want of time"; "": nothing to say
std::string to_string(const ConfirmedRecords& confirmed);
Json tuned_json(const TunedNetwork& tuned, bool curves);
// The table, why the search stopped, and where the time went.
std::string tuned_text(const TunedNetwork& tuned, int columns);

Json to_json(const Comparison& proof);
// "14.10 ms by default, 13.50 ms tuned: 1.04 x (1.02 .. 1.06)"
std::string proof_text(const Comparison& proof);
// Notes of a compile that tunes: what was seen and what was left out.
std::vector<std::string> tuning_notes(const TunedCompileReport& tuned, double limit);

Json to_json(const CheckedKernel& kernel);
// A line a kernel: the ratio over the processes, that of the default schedule to itself, whether
// the rank is the same in all, and how many kernels take their default.
std::string check_table(const std::vector<CheckedKernel>& kernels, int columns = kPlainColumns);

}  // namespace tw
