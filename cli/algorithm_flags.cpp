#include "cli/algorithm_flags.h"

#include "cli/flags.h"
#include "support/names_text.h"

namespace tw {

void AlgorithmFlags::define(Flags& flags) {
  flags.number(
      "--accuracy", accuracy, "E",
      "Error that algorithms may add, relative to an output's range; default: the target's");
  flags.number("--max-weight-growth", max_weight_growth, "G",
               "Size of the weights, of what direct algorithms need; default 1.5");
  flags.text("--algorithm", algorithm, "NAME",
             "Use this one wherever it applies, whatever the budgets: direct, winograd_f2, ...");
}

Expected<AlgorithmOptions> AlgorithmFlags::options(Target& target) const {
  AlgorithmOptions o;
  o.max_weight_growth = max_weight_growth;
  if (!(o.max_weight_growth >= 1))
    return make_error(DiagCode::invalid_argument,
                      "--max-weight-growth {0}: at least 1, which lets nothing grow",
                      o.max_weight_growth);
  if (accuracy > 1)
    return make_error(DiagCode::invalid_argument,
                      "--accuracy {0}: above 0 and up to 1, of an output's range", accuracy);
  if (accuracy > 0) target.accuracy = accuracy;
  if (algorithm.empty()) return o;
  o.only = algorithm_from_name(algorithm);
  if (o.only) return o;
  return wrong_word("--algorithm", algorithm, names_text(kAlgorithmCount, algorithm_name));
}

}  // namespace tw
