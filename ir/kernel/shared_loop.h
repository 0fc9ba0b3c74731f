// How the iterations of a parallel loop are shared out among threads: into equal parts, one for a
// thread at the most. The code generator makes them (backends/llvm/emit_parallel.cpp), and bench
// --plan counts them.
#pragma once
#include "ir/kernel/work.h"

namespace tw {

struct Target;

// The loop right inside `parallel` that is cut together with it, as one of few iterations (the
// channel groups of a narrow layer) would leave threads without work: begin and end of a part may
// then lie within a row. There is nothing beside it and its iterations are independent across
// threads: serial, spatial, of constant extent; what is stored in it goes to outputs, without
// combining and without being read back, or to buffers that each thread has to itself. Null: none,
// or `parallel` has iterations enough.
const stmt::Loop* shared_loop(const Kernel& kernel, const stmt::Loop& parallel);
// Threads share a parallel loop of more than one iteration, or with such a loop right inside. The
// others are serial code.
bool is_shared_out(const Kernel& kernel, const Stmt& s);

constexpr int64_t kPartNanoseconds = 1000;  // of work, that a part is worth the fork and join

// Parts that a kernel of so much work is worth, one at least. nanoseconds <= 0: any number.
Expr most_parts(const Work& work, const Target& target, int64_t nanoseconds);
// Of a loop that `around` others stand around: each of their iterations enters it, and does that
// part of the kernel's work.
Expr most_parts_below(Expr most, const std::vector<const stmt::Loop*>& around);

struct SharedLoop {
  Expr iterations;  // with those of the loop that is cut together with it
  Expr most_parts;  // threads can be of use to no more
  Expr entries;     // in a run: a fork and a join each
  Expr operations;  // in all entries
};
struct SharedWork {
  Expr operations;  // of the whole kernel
  std::vector<SharedLoop> loops;
};
// work: of the kernel as lowered.
SharedWork shared_work(const Kernel& scheduled, const Work& work, const Target& target,
                       int64_t nanoseconds = kPartNanoseconds);

}  // namespace tw
