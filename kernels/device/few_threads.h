// Finds the stages of a device's kernel that leave most of the device idle.
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
  std::string loop;                // carried: the loop that hands values to its next iteration
  int64_t threads = 1, steps = 1;  // threads that run it, and iterations of each
  Reason reason = Reason::no_rule;
};
// The stages of a scheduled kernel that few threads run for long while nothing runs beside them.
// Free extents count as eight. Threads that execute an instruction together share its steps.
std::vector<FewThreads> few_threads(const Kernel& scheduled, const Target& target);
// The text "stage 'sums' runs in 4 threads, 5000 steps each: loop 't' carries values ..."
std::string to_string(const FewThreads& stage);

}  // namespace tw
