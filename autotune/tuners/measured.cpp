// genetic, anneal, random and grid: explorers that go by measured times alone.
#include "autotune/tuners/tuner.h"

namespace tw {

SearchParts by_generations(const TunerInput& input) {
  return {nullptr, genetic_explorer(input.space, input.seed)};
}
SearchParts by_chains(const TunerInput& input) {
  return {nullptr, annealing_explorer(input.space, input.seed)};
}
SearchParts at_random(const TunerInput& input) {
  return {nullptr, random_explorer(input.space, input.seed)};
}
SearchParts in_order(const TunerInput& input) { return {nullptr, grid_explorer(input.space)}; }

}  // namespace tw
