#include <limits>

#include "autotune/features/features.h"

namespace tw {
namespace {
// The largest number of integers in a value of the knob
size_t width_of(const Knob& knob) {
  size_t width = 0;
  for (const std::vector<int64_t>& value : knob.values) width = std::max(width, value.size());
  return width;
}
}  // namespace

// The row has a switch for each sketch, then the knobs of every sketch in columns of their own.
Features knob_features(const Space& space) {
  const auto rows = [&space](const Candidate& candidate) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    FeatureRow row;
    for (size_t s = 0; s < space.sketches().size(); ++s)
      row.push_back(static_cast<int>(s) == candidate.point.sketch ? 1.0f : 0.0f);
    for (size_t s = 0; s < space.sketches().size(); ++s) {
      const bool chosen = static_cast<int>(s) == candidate.point.sketch;
      for (size_t k = 0; k < space.sketches()[s].knobs.size(); ++k) {
        const Knob& knob = space.sketches()[s].knobs[k];
        const std::vector<int64_t>* value =
            chosen ? &knob.values[static_cast<size_t>(candidate.point.choice[k])] : nullptr;
        for (size_t i = 0; i < width_of(knob); ++i)
          row.push_back(value && i < value->size() ? static_cast<float>((*value)[i]) : nan);
      }
    }
    return std::vector<FeatureRow>{std::move(row)};
  };
  return {"knob", true, rows};
}

std::vector<std::string> knob_feature_names(const Space& space) {
  std::vector<std::string> names;
  for (const Sketch& sketch : space.sketches()) names.push_back(sketch.name);
  for (const Sketch& sketch : space.sketches())
    for (const Knob& knob : sketch.knobs)
      for (size_t i = 0; i < width_of(knob); ++i)
        names.push_back(sketch.name + "." + knob.name + "[" + std::to_string(i) + "]");
  return names;
}

}  // namespace tw
