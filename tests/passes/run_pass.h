// Golden tests of passes: a pass turns one text into another.
#pragma once
#include <string>

namespace tw::test {

// Parses `before`, verifies, runs the pass, verifies, compares with `after` (both as printed from
// parsed text, so spacing is free). The pass must report a change exactly when the graphs differ,
// find nothing more to do in a second run, and keep the graph's results on random inputs.
void run_pass(const char* pass, const char* before, const char* after);
// Both run canonicalize on the body of a graph without symbols; `keeps` expects no change.
void canonicalizes(const std::string& before, const std::string& after);
void keeps(const std::string& body);

}  // namespace tw::test
