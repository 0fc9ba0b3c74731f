// Text and JSON for the results of tune and compile --tune.
#pragma once
#include <string>
#include <vector>

#include "cli/text/text_width.h"
#include "driver/tune/network_proof.h"
#include "driver/tune/tuned_compile.h"
#include "support/json.h"

namespace tw {

// "measured again: 5 gains stand, 2 do not; for want of time not measured again: 3 gains"; "":
// nothing to say
std::string to_string(const ConfirmedRecords& confirmed);
// whole: null: the command does not look at the whole network.
Json tuned_json(const TunedNetwork& tuned, const NetworkVerdict* whole, bool curves);
// The table, why the search stopped, where the time went, and the whole network.
std::string tuned_text(const TunedNetwork& tuned, const NetworkVerdict* whole, int columns);
// "whole network 1.07 x (1.06 to 1.08), 23.1 -> 21.6 ms", and what is not kept
std::string to_string(const NetworkVerdict& verdict);
Json to_json(const NetworkVerdict& verdict);

Json to_json(const Comparison& proof);
// "14.10 ms by default, 13.50 ms tuned: 1.04 x (1.02 .. 1.06)"
std::string proof_text(const Comparison& proof);
// Notes of a compile that tunes: its results, and kernels that failed or were not reached
std::vector<std::string> tuning_notes(const TunedCompileReport& tuned, double limit);

Json to_json(const CheckedKernel& kernel);
// A line for each kernel: the ratio over the processes, the ratio of the default schedule to
// itself, and a mark if the rank changes. The last line counts kernels that keep their rank, and
// those that take the default.
std::string check_table(const std::vector<CheckedKernel>& kernels, int columns = kPlainColumns);

}  // namespace tw
