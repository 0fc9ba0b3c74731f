// Which concurrent loop's iterations have their own copy of a temp.
#pragma once
#include "ir/schedule/nest.h"

namespace tw::sched {

// The loops (and ifs, blocks, roles) around all statements that are uses, from the outside in.
std::vector<Stmt> common_path(const Kernel& kernel,
                              const std::function<bool(const StmtNode&)>& is_use);
// Sets `per` of every temp: the innermost loop around all its uses of those that may own it
// (schedule/concurrent.cpp).
void assign_owners(Kernel& kernel, const Target* target);
// Token queues belong to the innermost concurrent loop around their signals and waits.
void assign_queue_owners(Kernel& kernel);
// Iterations of a vthread or bound loop write what is their own, and no other one reads it.
Error check_concurrent(const Kernel& kernel, const LoopRef& loop);
// The innermost vthread or bound loop of the path; "" when there is none.
std::string innermost_concurrent(std::span<const Stmt> path);

}  // namespace tw::sched
