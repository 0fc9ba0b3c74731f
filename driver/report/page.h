// Turns a report into one HTML file, which loads no other file.
#pragma once
#include "driver/report/report.h"
#include "driver/report/tune_report.h"

namespace tw {

std::string page(const Report& report);
std::string page(const TuneReport& report);
// JSON as the text of a script element: no name in it can end the element.
std::string script_text(const Json& value);

}  // namespace tw
