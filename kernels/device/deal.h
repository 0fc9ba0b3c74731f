// Deals a matrix out to threads, so that each keeps its elements in registers. The digits of rows
// and columns (kernels/device/placement.h) say which thread has an element.
#pragma once
#include <array>

#include "kernels/device/fragment_load.h"

namespace tw {

using Digits = std::vector<PlacementDigit>;

// digit_elements counts the elements that a thread has on one axis, digit_threads the threads that
// have some.
int64_t digit_elements(const Digits& digits);
int64_t digit_threads(const Digits& digits);
// thread_at is what a place on the axis adds to the thread's number. element_at numbers a thread's
// elements, part_at the threads that share a place on the other axis.
Expr thread_at(const Digits& digits, const Expr& place);
Expr element_at(const Digits& digits, const Expr& place);
Expr part_at(const Digits& digits, const Expr& place);
// The digits of such a number of a thread
Digits parts_of(const Digits& digits);
// The digits without those that have one value, with one for `count` groups of all the places
Digits in_groups(Digits digits, int64_t count, int64_t thread);

struct DealtLoop {
  std::vector<std::pair<int64_t, Loop>> threads;  // with the amount that a step adds
  Loops elements;                                 // outermost first
};
// Cuts a loop by its digits.
DealtLoop deal_loop(ScheduleBuilder& s, const Loop& loop, const Digits& digits);
// Loops over groups of `together` threads, and over the threads of one; none: there is one
struct Threads {
  Loop groups, lanes;
};
// Joins loops over threads, which must be the outermost ones of a nest.
Threads join_threads(ScheduleBuilder& s, const std::vector<DealtLoop>& dealt, int64_t together,
                     const std::string& name);
// Turns the loops of a nest into loops over threads, then over a thread's elements, which are
// unrolled. outer: loops around. vector: elements along the last loop form vectors, if they lie
// side by side.
Threads deal_nest(ScheduleBuilder& s, const Loops& loops, const std::vector<Digits>& digits,
                  int64_t together, const std::string& name, const Loops& outer = {},
                  bool vector = false);

// How copies are dealt out: to so many threads, in vectors where elements are adjacent. Of more
// turns than at_once, so many are unrolled. across: without vectors, neighbouring threads take
// neighbouring rows.
struct CopyDeal {
  int64_t threads = 1, vector = 1, at_once = 1 << 16;
  bool across = false;
};
struct DealtCopies {
  Loop thread;
  bool vectors = false;
};
// loops: those of the copies in a block, over rows and then over elements of a row
DealtCopies deal_copies(ScheduleBuilder& s, const Stage& stage, Loops loops, const CopyDeal& deal);
// Groups of so many threads, of a loop over all of them
Threads in_groups_of(ScheduleBuilder& s, const Loop& thread, int64_t together);

// Index [thread, element..] of a parameter of the instruction, for places on the two axes of its
// operand: row and depth, column and depth, row and column
std::vector<Expr> placed(const TileInstruction& by, int32_t parameter, const Expr& first,
                         const Expr& second);
// Puts a copy of an operand where the threads that execute the instruction together have it. The
// last two dimensions are those of the operand in memory.
void place_operand(ScheduleBuilder& s, const TileInstruction& by, const Stage& copy,
                   FragmentOf which);
// Lets these threads load the operands of all instructions in an iteration of the loop: together,
// if the target can, or each its own. Returns the loop over threads; none: they load together.
Loop load_operand(ScheduleBuilder& s, const TileInstruction& by, const Stage& copy, const Loop& at,
                  FragmentOf which);
// Shifts the rows of a buffer in the block's memory to other banks than the rows before, by as many
// elements as threads read of a row at one time, which the digits say.
void keep_rows_apart(ScheduleBuilder& s, const BufferName& buffer, const Digits& digits);

}  // namespace tw
