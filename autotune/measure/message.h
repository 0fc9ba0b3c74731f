// Jobs and results as bytes, little-endian and versioned, to send to a measuring process or a farm
// of boards and back
#pragma once
#include <string>
#include <string_view>

#include "autotune/measure.h"
#include "support/diag.h"

namespace tw {

std::string to_bytes(const MeasureJob& job);
std::string to_bytes(const MeasureResult& result);
// The bytes may be anything. Errors: another version, a missing or excess piece, a number out of
// range.
Expected<MeasureJob> job_from_bytes(std::string_view bytes);
Expected<MeasureResult> result_from_bytes(std::string_view bytes);

// The error's text on one line: each line break and the indentation behind it become a space.
std::string one_line(std::string_view text);

}  // namespace tw
