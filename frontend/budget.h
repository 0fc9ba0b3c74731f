// What a compiled model may need: the map `budget` of a YAML file, which can be a target's
// description.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/diag.h"

namespace YAML {
class Node;
}

namespace tw {

enum class Budgeted { artifact_bytes, weight_bytes, arena_bytes, error, p50_ms, cycles };
struct BudgetedName {
  Budgeted what;
  const char* name;
  bool bytes;     // the number is a size
  bool measured;  // on a run of the library
};
constexpr std::array<BudgetedName, 6> kBudgeted = {{
    {Budgeted::artifact_bytes, "artifact_bytes", true, false},
    {Budgeted::weight_bytes, "weight_bytes", true, false},
    {Budgeted::arena_bytes, "arena_bytes", true, false},
    {Budgeted::error, "error", false, true},
    {Budgeted::p50_ms, "p50_ms", false, true},
    {Budgeted::cycles, "cycles", false, true},
}};
const BudgetedName& name_of(Budgeted what);

struct BudgetLimit {
  Budgeted what;
  double most;
};
using Budget = std::vector<BudgetLimit>;  // in the order of kBudgeted

// Of the YAML file. `required`: a file without a budget is an error, else it has no limits.
Expected<Budget> load_budget(const std::string& file, bool required);
// The map itself; what is wrong with it is added to `problems`.
Budget read_budget(const YAML::Node& node, const std::string& file, std::vector<Diag>& problems);

// "32768", "32KiB", "1MiB", "2GiB"; nullopt: no size, or one above 2^40
std::optional<int64_t> size_from_text(const std::string& text);

}  // namespace tw
