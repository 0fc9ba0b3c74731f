// The flags of the accuracy gate, and how its report is shown.
#pragma once
#include <optional>
#include <string>

#include "cli/file_roles.h"
#include "cli/flags.h"
#include "driver/accuracy/gate.h"
#include "frontend/budget.h"
#include "support/json.h"

namespace tw {

struct AccuracyFlags {
  std::string max_error, data;
  int samples = 0;
  bool layers = false;

  void define(Flags& flags);
  // What they ask for; without --max-error the budget's error counts. nullopt: nothing. Errors: no
  // limit of that form; data, and no limit to hold against.
  Expected<std::optional<AccuracyRequest>> request(const Budget& budget, int threads) const;
};
// Errors: a target of several processors, which a limit is not about.
Error check_limited(const Target& target);

// "accuracy 0.0012, at most ..., on which data."
std::string accuracy_note(const AccuracyReport& report);
// The same, and a line a layer where something is known of it.
std::string accuracy_text(const AccuracyReport& report, int columns);
Json to_json(const AccuracyReport& report);

}  // namespace tw
