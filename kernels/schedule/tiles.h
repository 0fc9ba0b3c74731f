// Schedules sums in tile registers, by an instruction of the target whose operands are there.
#pragma once
#include "kernels/schedule/builder.h"

namespace tw {

// True: the instruction's operands and sums are in tile registers.
bool in_tiles(const Target& target, const SumInstruction& instruction);

// Rows of `row` at a time. Lowering has filled it up to whole tiles: two tiles if they divide it,
// as they divide a free number, otherwise one.
int64_t rows_of_tiles(const ScheduleBuilder& s, const SumInstruction& instruction, const Loop& row);

// Schedules the sums of `stage` with such an instruction, below loop `at`. They stay in as many
// tiles as `row`, `lane` and `tile` have there. One step of the innermost loop of `reduce` loads
// the operands. Behind all of these loops the sums go to the stage's buffer. The stage and the
// copies that it reads must still be as lowered.
void accumulate_tiles(ScheduleBuilder& s, const Stage& stage, const Loops& reduce,
                      const Loops& tile, const Loop& row, const Loop& lane,
                      const SumInstruction& instruction, const Loop& at);

}  // namespace tw
