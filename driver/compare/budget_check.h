// A library held against a budget.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "frontend/budget.h"
#include "support/json.h"

namespace tw {

struct BudgetRow {
  Budgeted what;
  double needed = 0, most = 0;
  bool within() const { return needed <= most; }
};
struct BudgetRequest {
  std::string library, model;  // the ONNX file that it was compiled from
  Budget budget;
  int threads = 1;              // of the runs that are timed
  std::optional<double> error;  // where it has been measured already
};
// A row a limit. Free dimensions have the sizes of the manifest's example, inputs are random. What
// is still to be measured needs a library that runs here; else an error says so.
Expected<std::vector<BudgetRow>> check_budget(const BudgetRequest& request);
bool within(const std::vector<BudgetRow>& rows);

std::string to_string(const std::vector<BudgetRow>& rows);
Json to_json(const std::vector<BudgetRow>& rows);
// A test suite of JUnit, a case a row.
std::string junit_text(const std::vector<BudgetRow>& rows, const std::string& suite);

}  // namespace tw
