// A task's space: sketches of both sources
#include <algorithm>
#include <iterator>

#include "autotune/spaces/sources.h"
#include "kernels/device/tensor_form.h"

namespace tw {
namespace {

// The default is a point of the families' sketches, and most of what beats it is near it.
constexpr double kTemplateShare = 0.75, kGeneratedShare = 0.25;

void share_out(std::vector<Sketch>& sketches, double all) {
  for (Sketch& sketch : sketches) sketch.share = all / static_cast<double>(sketches.size());
}

}  // namespace

Expected<Space> search_space(const Task& task, const Target& target, const SpaceOptions& options) {
  const bool processor = target.axes.empty() && !tensor_instruction(target, true);
  if (!processor && options.sketches == SketchSource::generated)
    return make_error(
        DiagCode::unsupported,
        "generated sketches are for processors, not for '{0}': its space has the template's",
        target.name);
  const auto place = std::make_shared<const Target>(target);
  std::vector<Sketch> sketches;
  if (options.sketches != SketchSource::generated)
    sketches = template_sketches(task, place, options);
  share_out(sketches, kTemplateShare);
  if (processor && options.sketches != SketchSource::templates) {
    TW_ASSIGN(std::vector<Sketch> generated, generated_sketches(task, place, options));
    share_out(generated, kGeneratedShare);
    std::ranges::move(generated, std::back_inserter(sketches));
  }
  if (sketches.empty())
    return make_error(DiagCode::invalid_argument,
                      "task '{0}' has no variants with a legal schedule, one at least is needed",
                      task.name);
  return Space(std::move(sketches));
}

}  // namespace tw
