// How a block's threads share out a matrix, so that each keeps its elements in registers.
#pragma once
#include "kernels/common/group_builder.h"
#include "kernels/device/tiles.h"

namespace tw {

// A thread has elements in some rows and columns, all pairs of them. Indices count loops: over
// threads, over a thread's rows, over its columns.
struct Deal {
  std::vector<int64_t> threads, rows, columns;
  std::function<Expr(const Index& thread, const Index& row)> row_at;
  std::function<Expr(const Index& thread, const Index& column)> column_at;
  // Where the element is, of a buffer of that shape, whose threads' parts are apart
  std::function<Index(const Index& thread, const Index& row, const Index& column)> place;
  Shape shape;
  // Threads that share a row, and which of them one is
  int64_t across = 1;
  std::function<Expr(const Index& thread)> part;

  int64_t thread_count() const;
  Shape row_shape() const;  // of one number for each thread's row: [threads.., rows..]
};

// By single threads: `across` of them share a row. Their rows are `rows / thread_rows` apart; their
// columns lie in vectors, those of all threads of a row side by side.
Deal scalar_deal(int64_t rows, int64_t columns, int64_t thread_rows, int64_t across,
                 int64_t vector);
// As an instruction has its sums; a warp has `warp_rows` rows and all columns.
Deal instruction_deal(const TileInstruction& by, int64_t rows, int64_t columns, int64_t warp_rows);

// One axis of an operand, as its digits say it.
int64_t digit_elements(const std::vector<PlacementDigit>& digits);  // of one thread
// The place on the axis of a thread's element.
Expr digit_place(const std::vector<PlacementDigit>& digits, const Expr& thread,
                 const Expr& element);
// [thread, element..] of a parameter of the instruction, at places of two loops of its semantics.
Index placed(const TileInstruction& by, int32_t parameter, const std::string& first_loop,
             const Expr& first, const std::string& second_loop, const Expr& second);

}  // namespace tw
