// Which of a model's choices to take back so that its error is within a limit.
#pragma once
#include <functional>
#include <set>
#include <vector>

#include "support/diag.h"

namespace tw {

// What builds of the model are off, with choices counted from 0 to `count`.
struct ChoiceErrors {
  size_t count = 0;
  std::function<Expected<double>(size_t first, size_t last)> alone;  // [first, last) and no others
  std::function<Expected<double>(const std::set<size_t>&)> without;  // all but these
};

struct TakenBack {
  std::set<size_t> choices;
  double error = 0;  // without them
  bool within = false;
};

// Halves the run of choices that alone does most harm until it is one, which is taken back, and
// goes on with the most harmful run that is left until the error is within `most`. Errors of
// several choices need not add up: the way goes by what is measured. error: with all of them.
Expected<TakenBack> take_back(const ChoiceErrors& errors, double error, double most);

}  // namespace tw
