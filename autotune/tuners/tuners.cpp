// The table of tuners. A tuner's function stands in a file of its own beside this one.
#include <algorithm>
#include <array>

#include "autotune/tuners/tuner.h"

namespace tw {

SearchParts by_trees(const TunerInput& input);
SearchParts by_generations(const TunerInput& input);
SearchParts by_chains(const TunerInput& input);
SearchParts at_random(const TunerInput& input);
SearchParts in_order(const TunerInput& input);
SearchParts by_corrected_ranker(const TunerInput& input);
SearchParts by_one_shot(const TunerInput& input);
SearchParts by_tlp(const TunerInput& input);

namespace {
constexpr std::array kTuners = {
    Tuner{.name = "gbt", .about = "trees and annealing", .parts = by_trees},
    Tuner{.name = "genetic", .parts = by_generations},
    Tuner{.name = "anneal", .parts = by_chains},
    Tuner{.name = "random", .parts = at_random, .starts_near = false},
    Tuner{.name = "grid", .parts = in_order, .starts_near = false, .exhaustive = true},
    Tuner{.name = "ranker", .parts = by_corrected_ranker, .predicted = true, .batches = 4},
    Tuner{.name = "one-shot", .parts = by_one_shot, .predicted = true},
    Tuner{.name = "tlp", .parts = by_tlp, .predicted = true},
    Tuner{.name = "mtl-tlp", .parts = by_tlp, .predicted = true},
};
}  // namespace

std::span<const Tuner> tuners() { return kTuners; }

const Tuner* tuner_named(std::string_view name) {
  const auto found = std::ranges::find_if(kTuners,
                                          [&](const Tuner& tuner) { return tuner.name == name; });
  return found == kTuners.end() ? nullptr : &*found;
}

}  // namespace tw
