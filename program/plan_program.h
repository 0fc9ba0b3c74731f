// The last step of a program: with the schedules of its kernels every buffer gets its place, in the
// arena, in memory that grows or in the weights.
#pragma once
#include "program/lower_program.h"

namespace tw {

struct PlannedProgram {
  Program program;
  // The processor's arena for the model's own graph, and what lies in it
  MemoryPlan arena;
  std::vector<Lifetime> buffers;
};

// scheduled: of each of the program's kernels. Errors: a region whose memory depends on what is
// known only while it runs.
Expected<PlannedProgram> plan_program(LoweredProgram lowered, std::vector<Kernel> scheduled,
                                      const Target& target);

}  // namespace tw
