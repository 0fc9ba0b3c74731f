// The template sketches: the hand-written schedule of each variant, with its decisions as knobs
#include "autotune/spaces/open_sketch.h"
#include "autotune/spaces/sources.h"
#include "kernels/default_schedule.h"

namespace tw {

std::vector<Sketch> template_sketches(const Task& task, const std::shared_ptr<const Target>& target,
                                      const SpaceOptions& options) {
  std::vector<Sketch> sketches;
  for (size_t v = 0; v < task.variants.size(); ++v) {
    const Variant& variant = task.variants[v];
    const auto build = [lowered = std::make_shared<const LoweredGroup>(variant.lowered),
                        target](Choices& choices) {
      return chosen_schedule(*lowered, *target, choices);
    };
    sketches.push_back(open_sketch(std::string(algorithm_name(variant.algorithm)) + ".template",
                                   static_cast<int>(v), build, options));
    // A knob's first value is the usual one.
    sketches.back().usual = std::vector<int>(sketches.back().knobs.size(), 0);
  }
  return sketches;
}

}  // namespace tw
