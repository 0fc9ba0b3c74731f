#include "frontend/budget.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>

#include "frontend/frontend.h"
#include "frontend/mapped_file.h"
#include "support/number.h"

namespace tw {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 40;

Diag budget_problem(const YAML::Node& node, const std::string& file, std::string text) {
  const YAML::Mark mark = node.Mark();
  const Location where = mark.is_null() ? Location{file, 0, 0}
                                        : Location{file, mark.line + 1, mark.column + 1};
  return {DiagCode::parse, std::move(text), where, {}};
}

std::string budget_keys() {
  std::string names;
  for (const BudgetedName& b : kBudgeted)
    names += (names.empty() ? "" : ", ") + std::string(b.name);
  return names;
}

}  // namespace

const BudgetedName& name_of(Budgeted what) {
  return *std::ranges::find(kBudgeted, what, &BudgetedName::what);
}

std::optional<int64_t> size_from_text(const std::string& text) {
  int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string unit(end, text.data() + text.size());
  const int64_t scale = unit.empty()    ? 1
                        : unit == "KiB" ? 1 << 10
                        : unit == "MiB" ? 1 << 20
                        : unit == "GiB" ? 1 << 30
                                        : 0;
  if (text.empty() || error != std::errc() || scale == 0 || value < 0 || value > kMaxSize / scale)
    return std::nullopt;
  return value * scale;
}

Budget read_budget(const YAML::Node& node, const std::string& file, std::vector<Diag>& problems) {
  Budget budget;
  const auto wrong = [&](const YAML::Node& at, std::string text) {
    problems.push_back(budget_problem(at, file, std::move(text)));
    problems.back().notes.push_back("accepted keys: " + budget_keys());
  };
  if (!node.IsMap()) {
    wrong(node, "budget must be a map");
    return budget;
  }
  for (const auto& entry : node) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
    const auto* known = std::ranges::find(kBudgeted, key, &BudgetedName::name);
    if (known == kBudgeted.end()) {
      wrong(entry.first, "unknown key '" + key + "' in the budget");
      continue;
    }
    if (std::ranges::count(budget, known->what, &BudgetLimit::what)) {
      wrong(entry.first, "key '" + key + "' is given twice");
      continue;
    }
    const std::string text = entry.second.IsScalar() ? entry.second.Scalar() : "";
    const std::optional<double> most = known->bytes ? std::optional<double>(size_from_text(text))
                                                    : number_from_text(text);
    if (most && *most >= 0) budget.push_back({known->what, *most});
    else
      wrong(entry.second, key + (known->bytes ? " must be a size such as 32768, 32KiB or 1MiB"
                                              : " must be a number that is not negative"));
  }
  std::ranges::sort(budget, {}, &BudgetLimit::what);
  return budget;
}

Expected<Budget> load_budget(const std::string& file, bool required) {
  TW_ASSIGN(const std::shared_ptr<const MappedFile> mapped, MappedFile::open(file));
  if (mapped->text().size() > kMaxDescription)
    return make_error({DiagCode::limit, "a budget's file has at most 64 KiB", {file, 0, 0}, {}});
  std::vector<Diag> problems;
  Budget budget;
  try {
    const YAML::Node root = YAML::Load(std::string(mapped->text()));
    const YAML::Node map = root.IsMap() ? root["budget"] : YAML::Node();
    if (map && map.IsDefined() && !map.IsNull()) budget = read_budget(map, file, problems);
    else if (required)
      problems.push_back(budget_problem(root, file, "there is no map 'budget' in the file"));
  } catch (const YAML::Exception& e) {
    return make_error({DiagCode::parse, e.msg, {file, e.mark.line + 1, e.mark.column + 1}, {}});
  }
  TW_TRY(make_error(std::move(problems)));
  return budget;
}

}  // namespace tw
