// Sizes that are made from data: what must be checked while the model runs, and where values
// without a bound live.
#pragma once
#include "ir/graph/graph.h"
#include "ir/program.h"
#include "program/plan_memory.h"

namespace tw {

// Conditions (bool expressions of symbols) without which the node has no result, or would touch
// memory that is not its operands': what the operator's infer function refuses where the sizes are
// known. They may hold for all symbols.
std::vector<Expr> conditions_of(const Graph& graph, const Node& node);

// The largest value of bytes for any values of these symbols; undefined: not to be said.
Expr largest(const Expr& bytes, const std::vector<std::string>& symbols, const Ranges& ranges);

// The same, or where the end cannot be said (of products of sizes with their quotients) a bound.
Expr most_bytes(const Expr& bytes, const std::vector<std::string>& symbols, const Ranges& ranges);

// By lifetime: the number of the growable buffer that it takes, or -1: the arena, for which its
// bytes are replaced by their largest number where they depend on data. Growable buffers are shared
// by lifetimes that do not meet, and numbered from `count` on, which counts them. Adds the steps of
// the program that let buffers grow; sorts all steps.
std::vector<int> plan_growable(std::vector<Lifetime>& lifetimes, const Ranges& symbols, int& count,
                               Program& program);

}  // namespace tw
