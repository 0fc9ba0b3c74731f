// The table of features that a user can choose.
#include <algorithm>
#include <array>

#include "autotune/features/features.h"

namespace tw {
namespace {
constexpr std::array kSets = {
    NamedFeatures{"knob", knob_features},
    NamedFeatures{"itervar", [](const Space&) { return itervar_features(); }},
    NamedFeatures{"curve", [](const Space&) { return curve_features(); }},
    NamedFeatures{"loops", [](const Space&) { return loop_features(); }},
};
}  // namespace

std::span<const NamedFeatures> feature_sets() { return kSets; }

const NamedFeatures* features_named(std::string_view name) {
  const auto found = std::ranges::find_if(
      kSets, [&](const NamedFeatures& set) { return set.name == name; });
  return found == kSets.end() ? nullptr : &*found;
}

}  // namespace tw
