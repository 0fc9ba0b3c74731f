// Data sets of the first schedule language. Their kernels were lowered for a chip: operands lay in
// panels already, and schedules had no steps for it. Now a task's kernel is as defined, and a
// program is a whole schedule, which begins with the steps that arrange the operands.
#pragma once
#include <string>
#include <vector>

#include "autotune/dataset/dataset.h"

namespace tw {

struct ConvertRequest {
  std::vector<std::string> target_folders;
  int jobs = 1;
};
struct ConvertCounts {
  int64_t tasks = 0, programs = 0;            // converted
  int64_t lost_tasks = 0, lost_programs = 0;  // without an equal in this language
  std::vector<std::string> reasons;           // a line for each task with losses
};
// Adds the tasks, programs and labels of `from` to `to`. Old and new kernel are scheduled side by
// side, and are equal up to names behind every step: so a label stays true. A task whose definition
// is arranged in another way now is lost, and so is a program with a step that is not legal now.
Expected<ConvertCounts> convert_set(DataSet& from, DataSet& to, const ConvertRequest& request);

}  // namespace tw
