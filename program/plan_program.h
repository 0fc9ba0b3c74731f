// The last step to a program. The schedules of the kernels are known, so every buffer gets its
// place: in the arena, in memory that grows, or in the weights.
#pragma once
#include "ir/schedule/constant_stages.h"
#include "program/lower_program.h"

namespace tw {

struct PlannedProgram {
  Program program;
  // The processor's arena for the model's own graph, and the buffers in it
  MemoryPlan arena;
  std::vector<Lifetime> buffers;
};

// `scheduled` has the kernels of the program in their order. Errors: a region whose memory depends
// on values of its own run.
Expected<PlannedProgram> plan_program(LoweredProgram lowered, std::vector<RunKernel> scheduled,
                                      const Target& target);

}  // namespace tw
