// A launch as one of its threads sees it: no bound loops, but variables that say which thread it is, conditions around what only some
// threads do, and every barrier written out.
#pragma once
#include "backends/device/launch.h"

namespace tw {

std::string thread_variable(const AxisPlace& place);   // "group.0", "item.2"

struct ThreadForm {
  Stmt body;
  Ranges variables;   // those that it may use
};

Expected<ThreadForm> thread_form(const LaunchPlan& plan, const Target& target);

}  // namespace tw
