// tilewright.lock: the schedule of every kernel of a model, written beside it so that later
// compiles make the same code whatever a log has learned.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/group.h"
#include "ir/simplify.h"
#include "ir/target.h"
#include "passes/pass.h"
#include "program/schedules.h"
#include "support/diag.h"

namespace tw {

// The pins of one model for one target.
struct LockSection {
  std::string model;                    // file name
  std::map<std::string, int64_t> dims;  // bound by --dim
  SymbolLimitsOf limits;                // said by --dim
  std::string target, target_hash;      // name, codegen_hash
  int threads = 1;
  Precision precision = Precision::fp32;  // what the target's came to
  // Blocks of values by name, where measured times chose them; none: nobody has measured
  std::optional<std::map<std::string, int64_t>> layouts = {};
  // Of products with constant weights, by the value that they make: one task may be computed in two
  // ways
  std::map<std::string, Algorithm> algorithms = {};
  // Layers that a limit of accuracy took back, by the value that their product makes
  std::set<std::string> exact = {};
  std::vector<Pin> pins = {};
};
// They pin the same compile.
bool same_place(const LockSection& a, const LockSection& b);
std::string describe(const LockSection& section);  // "digits.onnx (batch=1) for znver4, 1 thread"

struct Lock {
  std::vector<LockSection> sections;
  // Of another version of the format or of the schedule language: nothing of it was read
  bool outdated = false;
  const LockSection* find(const LockSection& place) const;  // null: none of that place
  // Takes the place of one of the same place
  void set_section(LockSection section);
};

// JSON, sorted: the same pins give the same bytes.
std::string print(const Lock& lock);
Expected<Lock> parse_lock(std::string_view text, const std::string& file);

}  // namespace tw
