// Which tasks a model may see: whole families of networks are held out, and tasks like those of
// training do not count as unseen.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "autotune/task_text.h"

namespace tw {

// What a task is like: the kind of its anchor, and the logarithms to base 2 of all extents of its
// operands and its result.
struct TaskShape {
  std::string kind;
  std::vector<double> log_extents;
};
TaskShape shape_of(const ParsedTask& task);
// Of one kind, and no extent differs by more than half a power of two.
bool near_duplicates(const TaskShape& a, const TaskShape& b);

struct SplitRule {
  std::set<std::string> test, validation;  // families of networks
};

}  // namespace tw
