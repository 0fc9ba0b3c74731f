// Chooses which of a model's choices to take back so that its error is within a limit.
#pragma once
#include <functional>
#include <set>
#include <vector>

#include "support/diag.h"

namespace tw {

// Errors of builds of the model. Choices are counted from 0 to `count`.
struct ChoiceErrors {
  size_t count = 0;
  std::function<Expected<double>(size_t first, size_t last)> alone;  // only choices [first, last)
  std::function<Expected<double>(const std::set<size_t>&)> without;  // all choices but these
};

struct TakenBack {
  std::set<size_t> choices;
  double error = 0;  // error without these choices
  bool within = false;
};

// Halves the most harmful run of choices until one choice is left, takes it back, and goes on with
// the most harmful run that remains, until the error is within `most`. Errors of several choices
// need not add up, so every step measures. `error` is the one with all choices.
Expected<TakenBack> take_back(const ChoiceErrors& errors, double error, double most);

}  // namespace tw
