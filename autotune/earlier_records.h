// Records of earlier versions, whose kernels were lowered with their operands arranged for the
// target. Schedules arrange them now.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "autotune/record.h"
#include "autotune/task.h"

namespace tw {

struct EarlierForm {
  std::string kernel_hash;  // the earlier lowered kernel's
  Schedule steps;           // arrange the operands as it had them
  // A schedule of the earlier kernel, for the present one. nullopt: the text is no schedule
  std::optional<std::string> present(const std::string& schedule) const;
};
// nullopt: the kernel was lowered in the same way.
std::optional<EarlierForm> earlier_form(const LoweredGroup& lowered, const Target& target);

// Rewrites the records of the task's earlier kernels. Others stay as they are.
std::vector<Record> present_records(std::vector<Record> records, const Task& task,
                                    const Target& target);

}  // namespace tw
