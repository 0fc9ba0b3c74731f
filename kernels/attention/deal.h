// A deal distributes a matrix among the threads of a block, so that each keeps its elements in
// registers.
#pragma once
#include "kernels/common/target_builder.h"
#include "kernels/device/tiles.h"

namespace tw {

// A thread has some rows and some columns, and all elements where they cross. Each index counts
// loops: over threads, over a thread's rows, over its columns.
struct Deal {
  std::vector<int64_t> threads, rows, columns;
  std::function<Expr(const Index& thread, const Index& row)> row_at;
  std::function<Expr(const Index& thread, const Index& column)> column_at;
  // Index of an element in a buffer of shape `shape`, where the parts of threads are apart
  std::function<Index(const Index& thread, const Index& row, const Index& column)> place;
  Shape shape;
  // Threads that share a row, and the number of a thread among them
  int64_t across = 1;
  std::function<Expr(const Index& thread)> part;

  int64_t thread_count() const;
  Shape row_shape() const;  // shape with one number for each thread's row: [threads.., rows..]
};

// A deal for single threads, `across` of which share a row. The rows of a thread are `rows /
// thread_rows` apart. Its columns lie in vectors, and those of all threads of a row are adjacent.
Deal scalar_deal(int64_t rows, int64_t columns, int64_t thread_rows, int64_t across,
                 int64_t vector);
// The deal in which an instruction has its sums. A warp has `warp_rows` rows and all columns.
Deal instruction_deal(const TileInstruction& by, int64_t rows, int64_t columns, int64_t warp_rows);

// Elements that one thread has on the axis that the digits describe
int64_t digit_elements(const std::vector<PlacementDigit>& digits);
// The place of a thread's element on the axis that the digits describe
Expr digit_place(const std::vector<PlacementDigit>& digits, const Expr& thread,
                 const Expr& element);
// Index [thread, element..] of a parameter of the instruction, for places `first` and `second` of
// two loops of its semantics
Index placed(const TileInstruction& by, int32_t parameter, const std::string& first_loop,
             const Expr& first, const std::string& second_loop, const Expr& second);

}  // namespace tw
