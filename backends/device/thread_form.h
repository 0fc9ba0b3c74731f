// A launch as one of its threads sees it: no bound loops, but variables that say which thread it
// is, conditions around what only some threads do, and barriers where it reads what others wrote,
// or writes what they read.
#pragma once
#include "backends/device/launch.h"

namespace tw::device {

std::string thread_variable(const AxisPlace& place);  // "group.0", "item.2"

struct ThreadForm {
  Kernel kernel;     // of this launch; buffers without the dimensions that count threads
  Ranges variables;  // those that it may use
};

Expected<ThreadForm> thread_form(const Kernel& kernel, const LaunchPlan& plan,
                                 const Target& target);

}  // namespace tw::device
