// Checks a library against a budget: the most that it may need of memory, time and error.
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
  std::string library, model;  // model: the ONNX file it was compiled from
  Budget budget;
  int threads = 1;              // threads of the runs
  std::optional<double> error;  // the error, if it is measured already
};
// One row for each limit. Free dimensions have the sizes of the manifest's example, and inputs are
// random. Errors: a limit must be measured, and the library does not run here.
Expected<std::vector<BudgetRow>> check_budget(const BudgetRequest& request);
bool within(const std::vector<BudgetRow>& rows);

std::string to_string(const std::vector<BudgetRow>& rows);
Json to_json(const std::vector<BudgetRow>& rows);
// A JUnit test suite with a case for each row
std::string junit_text(const std::vector<BudgetRow>& rows, const std::string& suite);

}  // namespace tw
