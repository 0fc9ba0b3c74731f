// The report of compile in JSON, and the lines beside its summary.
#pragma once
#include <string>
#include <vector>

#include "driver/compile/compile.h"
#include "support/json.h"

namespace tw {

struct PassTime {
  std::string pass, report;
  double seconds = 0;
  bool changed = false;
};

// tuned_since: when the compile's own search began; 0: it made none.
Json::Object to_json(const CompileReport& r, const std::vector<PassTime>& passes, double seconds,
                     int64_t tuned_since);
// Faults, warnings and notes, a line each.
std::string remarks(const CompileReport& r);
std::string pass_table(const std::vector<PassTime>& passes);

}  // namespace tw
