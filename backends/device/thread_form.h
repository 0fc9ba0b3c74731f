// A launch as one of its threads sees it. There are no bound loops. Instead, variables identify the
// thread, conditions enclose the work of some threads, and barriers stand where a thread reads data
// that others wrote, or writes data that others read.
#pragma once
#include "backends/device/launch.h"

namespace tw::device {

std::string thread_variable(const AxisPlace& place);  // "group.0", "item.2"

struct ThreadForm {
  Kernel kernel;     // the kernel of this launch; buffers lack the dimensions that count threads
  Ranges variables;  // the variables that it may use
};

Expected<ThreadForm> thread_form(const Kernel& kernel, const LaunchPlan& plan,
                                 const Target& target);

}  // namespace tw::device
