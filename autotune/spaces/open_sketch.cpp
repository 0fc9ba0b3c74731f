#include "autotune/spaces/open_sketch.h"

#include <algorithm>

namespace tw {

Sketch open_sketch(std::string name, int variant, const BuildSchedule& build,
                   const SpaceOptions& options) {
  Choices seen(options.rules);
  Expected<Schedule> usual = build(seen);
  if (!usual) llvm::consumeError(usual.takeError());
  std::vector<Knob> knobs = seen.noted();
  std::erase_if(knobs, [](const Knob& knob) { return knob.values.size() < 2; });
  auto fill = [knobs, build,
               rules = options.rules](const std::vector<int>& choice) -> Expected<FilledSketch> {
    Choices choices(knobs, choice, rules);
    TW_ASSIGN(Schedule schedule, build(choices));
    return FilledSketch(std::move(schedule), choices.scheduled());
  };
  return {std::move(name), variant, std::move(knobs), std::move(fill)};
}

}  // namespace tw
