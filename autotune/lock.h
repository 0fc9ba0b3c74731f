// tilewright.lock: a file beside a model with the schedule of every kernel. With it, later compiles
// make the same code, whatever a log has learned in the meantime.
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
  std::map<std::string, int64_t> dims;  // dims bound by --dim
  SymbolLimitsOf limits;                // limits given by --dim
  std::string target, target_hash;      // name, codegen_hash
  int threads = 1;
  Precision precision = Precision::fp32;  // the precision that the target's setting comes to
  // Blocks of values by name, where measured times chose them; nullopt: nobody has measured
  std::optional<std::map<std::string, int64_t>> layouts = {};
  // Algorithms of products with constant weights, by the value that they make: one task may use two
  // algorithms
  std::map<std::string, Algorithm> algorithms = {};
  // Layers that an accuracy limit turned back to the direct sum, by the value that their product
  // makes
  std::set<std::string> exact = {};
  std::vector<Pin> pins = {};
};
// True when both pin the same compile.
bool same_place(const LockSection& a, const LockSection& b);
std::string describe(const LockSection& section);  // "digits.onnx (batch=1) for znver4, 1 thread"

struct Lock {
  std::vector<LockSection> sections;
  // The file has another version of the format or of the schedule language, and nothing of it was
  // read
  bool outdated = false;
  const LockSection* find(const LockSection& place) const;  // null: no section for that place
  // Replaces the section of the same place, if any.
  void set_section(LockSection section);
};

// The text is JSON and sorted: the same pins give the same bytes.
std::string print(const Lock& lock);
Expected<Lock> parse_lock(std::string_view text, const std::string& file);

}  // namespace tw
