// Decisions about operands: indices for weights in panels of vectors, instructions
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "kernels/common/integer_product.h"
#include "kernels/schedule/builder.h"

namespace tw {

inline constexpr int64_t kWidestPanel = 8;  // in vectors, for the search spaces

// The loop's variable; 0 if the loop is none
Expr variable(const Loop& loop);
// The index, in whose dimension a pack fills up whole parts of `factor` places
Expr filled_up(const Expr& index, int64_t factor);

// The best instruction, or another one, or none: knob "instruction" (0: the best, -1: none). best:
// the best one without some.
IntegerProduct chosen_instruction(
    const ScheduleBuilder& s,
    const std::function<IntegerProduct(const std::vector<std::string>& without)>& best);

}  // namespace tw
