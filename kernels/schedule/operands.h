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

// Indices and loops NAMEj.. of a right operand in panels of columns: [panel, depth, column of the
// panel], or for an instruction in tiles [panel, steps, tile of columns, part of the steps, column
// and step]. together: steps of the depth that are innermost
std::vector<ScheduleBuilder::PackedDim> panel_dims(const std::string& name, const Expr& column,
                                                   const Expr& step, int64_t panel,
                                                   int64_t together,
                                                   const IntegerProduct& product = {});
// Indices and loops of a left operand for an instruction: [row, depth], or in tiles [tile of rows,
// steps, row, step]
std::vector<ScheduleBuilder::PackedDim> row_dims(const std::string& name, const Expr& row,
                                                 const Expr& step, const IntegerProduct& product);
// The stage's spatial loops other than `row` and `column` on which the factor depends, as
// dimensions NAMEb0..
std::vector<ScheduleBuilder::PackedDim> batch_dims(const ScheduleBuilder& s, const Stage& stage,
                                                   Factor factor, const std::string& name,
                                                   const Loop& row, const Loop& column);
// Makes the steps of the depth that an instruction sums loops of their own, NAMEp and in tiles
// NAMEq around it.
struct Steps {
  Loop depth, innermost;
};
Steps split_steps(ScheduleBuilder& s, const Loop& depth, const std::string& name,
                  const IntegerProduct& product);

// The best instruction, or another one, or none: knob "instruction" (0: the best, -1: none). best:
// the best one without some.
IntegerProduct chosen_instruction(
    const ScheduleBuilder& s,
    const std::function<IntegerProduct(const std::vector<std::string>& without)>& best);

}  // namespace tw
