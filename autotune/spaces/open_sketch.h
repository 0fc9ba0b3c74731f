// Sketches of functions that build schedules and leave decisions open.
#pragma once
#include <functional>

#include "autotune/space.h"

namespace tw {

// The same steps for the same choices, from any thread
using BuildSchedule = std::function<Expected<Schedule>(Choices& choices)>;
// The sketch of everything that `build` may be asked for. The usual values of all knobs may be
// illegal.
Sketch open_sketch(std::string name, int variant, const BuildSchedule& build,
                   const SpaceOptions& options);

}  // namespace tw
