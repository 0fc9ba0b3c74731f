// The template space: the hand-written schedule of each variant, with its decisions as knobs
#include "autotune/spaces/open_sketch.h"
#include "kernels/default_schedule.h"

namespace tw {

Expected<Space> template_space(const Task& task, const Target& target,
                               const SpaceOptions& options) {
  std::vector<Sketch> sketches;
  const auto place = std::make_shared<const Target>(target);
  for (size_t v = 0; v < task.variants.size(); ++v) {
    const Variant& variant = task.variants[v];
    const auto build = [lowered = std::make_shared<const LoweredGroup>(variant.lowered), place](
                           Choices& choices) { return chosen_schedule(*lowered, *place, choices); };
    sketches.push_back(open_sketch(std::string(algorithm_name(variant.algorithm)) + ".template",
                                   static_cast<int>(v), build, options));
    // A knob's first value is the usual one.
    sketches.back().usual = std::vector<int>(sketches.back().knobs.size(), 0);
  }
  if (sketches.empty())
    return make_error(DiagCode::invalid_argument,
                      "task '{0}' has no variants, one at least is needed", task.name);
  return Space(std::move(sketches));
}

}  // namespace tw
