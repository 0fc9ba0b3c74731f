// Sizes that data decide: their conditions at run time, and the memory of values without a bound.
#pragma once
#include "ir/graph/graph.h"
#include "ir/program.h"
#include "program/plan_memory.h"

namespace tw {

// Conditions (bool expressions of symbols) without which the node has no result, or would touch
// memory outside its operands. For known sizes, the operator's infer function refuses the same.
// They may hold for all symbols.
std::vector<Expr> conditions_of(const Graph& graph, const Node& node);

// The largest value of `bytes` over all values of these symbols; undefined if it is unknown.
Expr largest(const Expr& bytes, const std::vector<std::string>& symbols, const Ranges& ranges);

// As largest(), but an upper bound where the largest is unknown: for products of sizes with their
// quotients.
Expr most_bytes(const Expr& bytes, const std::vector<std::string>& symbols, const Ranges& ranges);

// By lifetime: the number of its growable buffer, or -1 for the arena. A lifetime in the arena
// whose bytes depend on data gets their largest number. Lifetimes that do not meet share growable
// buffers. The numbers begin at `count`, which then counts the new ones too. Adds the steps that
// let buffers grow to the program, and sorts all steps.
std::vector<int> plan_growable(std::vector<Lifetime>& lifetimes, const Ranges& symbols, int& count,
                               Program& program);

}  // namespace tw
