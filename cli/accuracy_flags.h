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
  // The request of the flags; without --max-error the budget's error is the limit. nullopt: there
  // is no limit. Errors: a malformed limit, or the other flags without a limit.
  Expected<std::optional<AccuracyRequest>> request(const Budget& budget, int threads) const;
};
// Errors: a target of several processors, since a limit is about one.
Error check_limited(const Target& target);

// "accuracy 0.0012, at most ...", with the layers' choices and the samples
std::string accuracy_note(const AccuracyReport& report);
// accuracy_note(), and a line for each layer that has an error of its own or was taken back
std::string accuracy_text(const AccuracyReport& report, int columns);
Json to_json(const AccuracyReport& report);

}  // namespace tw
