// Determines the concurrent loop whose iterations each have their own copy of a temp or token
// queue.
#pragma once
#include "ir/schedule/nest.h"

namespace tw::sched {

// The loops, ifs, blocks and roles around all statements that are uses, from the outside in
std::vector<Stmt> common_path(const Kernel& kernel,
                              const std::function<bool(const StmtNode&)>& is_use);
// Sets `per` of every temp. Of the loops that may own it (schedule/concurrent.cpp), it takes the
// innermost one around all uses.
void assign_owners(Kernel& kernel, const Target* target);
// Sets `per` of every token queue: the innermost concurrent loop around its signals and waits.
void assign_queue_owners(Kernel& kernel);
// Requires that iterations of a vthread or bound loop write their own data, and that no other
// iteration reads it.
Error check_concurrent(const Kernel& kernel, const LoopRef& loop);
// The variable of the innermost vthread or bound loop of the path; "": there is none.
std::string innermost_concurrent(std::span<const Stmt> path);

}  // namespace tw::sched
