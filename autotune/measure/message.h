// Jobs and results as bytes, little-endian and versioned: what a measuring process or a farm of
// boards is sent and answers.
#pragma once
#include <string>
#include <string_view>

#include "autotune/measure.h"
#include "support/diag.h"

namespace tw {

std::string to_bytes(const MeasureJob& job);
std::string to_bytes(const MeasureResult& result);
// The bytes may be anything. Errors: another version, a piece missing or left over, a number out of
// its range.
Expected<MeasureJob> job_from_bytes(std::string_view bytes);
Expected<MeasureResult> result_from_bytes(std::string_view bytes);

// An error's text for a result: ends of lines, and what indents the next one, are one space.
std::string one_line(std::string_view text);

}  // namespace tw
