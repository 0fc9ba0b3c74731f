// Division of a parallel loop's iterations among threads: into equal parts, at most one for each
// thread. The code generator makes the parts (backends/llvm/emit_parallel.cpp), and bench --plan
// counts them. Threads may take chunks of each other's parts, which the plan leaves out.
#pragma once
#include "ir/kernel/work.h"

namespace tw {

struct Target;

// The loop directly inside `parallel` that is divided together with it; null: none is, or
// `parallel` alone has enough iterations. It helps where few outer iterations, such as the channel
// groups of a narrow layer, would leave threads idle. A part may then begin and end within a row.
// The inner loop is alone in its body, serial and spatial, of constant extent. Its iterations are
// independent across threads: its stores go to outputs, without combining and without being read
// back, or to buffers that each thread has for itself.
const stmt::Loop* shared_loop(const Kernel& kernel, const stmt::Loop& parallel);
// True: threads share the loop. It is parallel and has more than one iteration, or an inner loop to
// share. Other loops are serial code.
bool is_shared_out(const Kernel& kernel, const Stmt& s);

constexpr int64_t kPartNanoseconds = 1000;  // work that makes a part worth the fork and join

// The number of parts that a kernel with this much work is worth, at least one. nanoseconds <= 0:
// no limit.
Expr most_parts(const Work& work, const Target& target, int64_t nanoseconds);
// The limit for a loop inside the loops `around`. Each of their iterations enters it and does its
// share of the kernel's work.
Expr most_parts_below(Expr most, const std::vector<const stmt::Loop*>& around);

struct SharedLoop {
  Expr iterations;  // including those of the inner loop that is divided with it
  Expr most_parts;  // more threads are of no use
  Expr entries;     // entries in a run; each costs a fork and a join
  Expr operations;  // total of all entries
};
struct SharedWork {
  Expr operations;  // operations of the whole kernel
  std::vector<SharedLoop> loops;
};
// work: of the kernel as lowered
SharedWork shared_work(const Kernel& scheduled, const Work& work, const Target& target,
                       int64_t nanoseconds = kPartNanoseconds);

}  // namespace tw
