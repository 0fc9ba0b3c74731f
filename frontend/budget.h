// Budgets of compiled models: the map `budget` of a YAML file, which may also describe a target.
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
  bool bytes;     // the number is a size in bytes
  bool measured;  // a run of the library measures it
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

// Reads the budget of a YAML file. If the file has none, that is an error if `required`, else there
// are no limits.
Expected<Budget> load_budget(const std::string& file, bool required);
// Reads the map itself, and adds what is wrong with it to `problems`.
Budget read_budget(const YAML::Node& node, const std::string& file, std::vector<Diag>& problems);

// "32768", "32KiB", "1MiB", "2GiB"; nullopt if the text is no size, or one above 2^40
std::optional<int64_t> size_from_text(const std::string& text);

}  // namespace tw
