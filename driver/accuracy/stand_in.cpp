#include "driver/accuracy/stand_in.h"

#include <algorithm>
#include <map>

#include "driver/run/library_runs.h"
#include "frontend/frontend.h"
#include "passes/precision.h"

namespace tw {
namespace {

// Names of choices do not show this difference: one target multiplies bf16, the other only keeps
// weights in it.
Error check_same_products(const Target& target, const Target& host) {
  if (precision_of(target) != Precision::bf16 || multiplies_bf16(target) == multiplies_bf16(host))
    return Error::success();
  return make_error(
      DiagCode::unsupported,
      "a limit of accuracy for target '{0}' is measured on this machine, and only {1} "
      "multiplies bf16, the other keeps weights in it: a limit needs a machine that "
      "runs the target's libraries, or --precision fp32",
      target.name, multiplies_bf16(target) ? "the target" : "this machine");
}

std::map<std::string, std::string> choices_of(const CompileReport& report) {
  std::map<std::string, std::string> choices;
  for (const LossyLayer& layer : report.lossy) choices.emplace(layer.name, layer.choice);
  return choices;
}

std::string choice_in(const std::map<std::string, std::string>& choices, const std::string& name) {
  const auto found = choices.find(name);
  return found == choices.end() ? "exact" : found->second;
}

}  // namespace

Expected<std::optional<Target>> stand_in_for(const Target& target) {
  if (!target.devices.empty() || runs_here(target)) return std::optional<Target>();
  Target host = with_all_rates(host_target(), {});
  host.accuracy = target.accuracy;
  host.fast_math = target.fast_math;
  set_precision(host, precision_of(target));
  TW_TRY(check_precision(host));
  TW_TRY(check_same_products(target, host));
  return std::optional(std::move(host));
}

Error check_same_choices(const CompileReport& compiled, const CompileReport& stand_in,
                         const Target& target) {
  const auto wanted = choices_of(compiled), got = choices_of(stand_in);
  if (wanted == got) return Error::success();
  Diag diag{DiagCode::unsupported,
            "a limit of accuracy for target '" + target.name +
                "' is measured on this machine with the same choices, which it cannot make: a "
                "limit needs a machine that runs the target's libraries",
            {},
            {}};
  std::map<std::string, std::string> all = wanted;
  all.insert(got.begin(), got.end());
  for (const auto& [name, choice] : all)
    if (choice_in(wanted, name) != choice_in(got, name))
      diag.notes.push_back(name + ": " + choice_in(wanted, name) + " for the target, " +
                           choice_in(got, name) + " here");
  return make_error(std::move(diag));
}

}  // namespace tw
