// Sums in tile registers, by an instruction of the target that takes its operands from such ones.
#pragma once
#include "kernels/schedule/builder.h"

namespace tw {

// Whether the instruction's operands and sums are in tile registers.
bool in_tiles(const Target& target, const SumInstruction& instruction);

// Of `row`, which lowering has filled up to whole tiles: the rows of two tiles, where they divide
// it, as they do a free number.
int64_t rows_of_tiles(const ScheduleBuilder& s, const SumInstruction& instruction, const Loop& row);

// The sums of `stage` by such an instruction, below loop `at`. They stay in as many tiles as `row`,
// `lane` and `tile` have there. One step of the innermost of the reduce loops `reduce` loads what
// it multiplies, and behind all of them the sums go to the stage's buffer. The stage is as lowered
// yet, and so are the copies that it reads.
void accumulate_tiles(ScheduleBuilder& s, const Stage& stage, const Loops& reduce,
                      const Loops& tile, const Loop& row, const Loop& lane,
                      const SumInstruction& instruction, const Loop& at);

}  // namespace tw
