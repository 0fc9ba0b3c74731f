// Makes sketches from functions that build schedules and leave decisions open
#pragma once
#include <functional>

#include "autotune/space.h"

namespace tw {

// Takes the same steps for the same choices; callable from any thread.
using BuildSchedule = std::function<Expected<Schedule>(Choices& choices)>;
// The sketch with all knobs that `build` may ask for. The point of all usual values may be illegal.
Sketch open_sketch(std::string name, int variant, const BuildSchedule& build,
                   const SpaceOptions& options);

}  // namespace tw
