// Golden tests of passes: text in, pass, text out.
#pragma once
#include <string>

namespace tw::test {

// Parses `before`, verifies, runs the pass, verifies, compares with `after` (both as printed from
// parsed text, so spacing is free); the pass must report a change exactly when the graphs differ,
// find nothing more to do in a second run, and keep what the graph computes on random inputs.
void run_pass(const char* pass, const char* before, const char* after);
// The same of canonicalize, for the bodies of graphs without symbols; keeps: nothing changes.
void canonicalizes(const std::string& before, const std::string& after);
void keeps(const std::string& body);

}  // namespace tw::test
