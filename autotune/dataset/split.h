// Decides which tasks a model may learn from. Whole families of networks are held out, and tasks
// similar to training tasks do not count as unseen.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "autotune/task_text.h"

namespace tw {

// The similarity of tasks: the kind of the anchor, and the logarithms to base 2 of all extents of
// its operands and its result
struct TaskShape {
  std::string kind;
  std::vector<double> log_extents;
};
TaskShape shape_of(const ParsedTask& task);
// True for tasks of one kind whose extents all differ by half a power of two at most
bool near_duplicates(const TaskShape& a, const TaskShape& b);

struct SplitRule {
  std::set<std::string> test, validation;  // families of networks
};

}  // namespace tw
