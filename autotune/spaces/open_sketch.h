// Sketches of functions that build schedules and leave decisions open.
#pragma once
#include <functional>

#include "autotune/space.h"

namespace tw {

using BuildSchedule = std::function<Expected<Schedule>(Choices& choices)>;   // the same steps for the same choices, from any thread
// The sketch of everything that `build` may be asked for. The usual values of all knobs may be illegal.
Sketch open_sketch(std::string name, int variant, const BuildSchedule& build, const SpaceOptions& options);

}  // namespace tw
