// Which stages of a device's kernel leave most of it without work.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ir/kernel/kernel.h"
#include "ir/target.h"

namespace tw {

struct FewThreads {
  enum class Reason : uint8_t { carried, few_points, no_rule };
  std::string stage;
  std::string loop;                // carried: that hands values from one iteration to the next
  int64_t threads = 1, steps = 1;  // that run it, and iterations of each
  Reason reason = Reason::no_rule;
};
// Stages of a scheduled kernel that few threads run for long, where nothing runs beside them. Free
// extents count as eight. Threads that do an instruction of the target together share its steps.
std::vector<FewThreads> few_threads(const Kernel& scheduled, const Target& target);
// "stage 'sums' runs in 4 threads, 5000 steps each: loop 't' carries values ..."
std::string to_string(const FewThreads& stage);

}  // namespace tw
