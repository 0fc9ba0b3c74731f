// Matrix products: what lowering makes of them and the schedule takes.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "ir/graph/graph.h"
#include "kernels/common/handles.h"
#include "kernels/common/lowered.h"

namespace tw {

class GroupBuilder;
class ScheduleBuilder;

// The last stage of a matrix product, whatever computes its sums.
struct ProductOutput {
  Stage stage;
  Loops batches;
  Loop row, column;
};

struct MatMulStages {
  const char* family() const { return "matmul"; }
  Stages copies;  // of operands, made at run time: nests of their own
  BufferName
      weights;        // the right operand in panels: [batch.., panel, depth.., column of the panel]
  int64_t panel = 1;  // columns of one
  Stage acc;          // the sums, of whole panels
  Loop acc_row, acc_column;
  Loops depth;  // of acc; of integers of few bits: the blocks
  // Of integers of few bits: a block's sum of products, [row, block, column], and, where an
  // instruction computes it, the numbers taken out of their bytes for it.
  struct Blocks {
    Stage sums, numbers;
    Loop row, column, step, in_byte;       // of sums; numbers lie in steps of some bytes
    Loop numbers_column, numbers_of_step;  // of numbers
    // What is made of the rows, in this order, with the row's loop and the one that vectors take.
    struct OfRows {
      Stage stage;
      Loop row, along;
    };
    std::vector<OfRows> of_rows;
  } blocks;
  Loop paired;                 // of the depth: whose pairs of steps the panels hold innermost; none
  SumInstruction instruction;  // of acc, or of blocks.sums
  ProductOutput y;
};

Expected<Lowered<MatMulStages>> lower_matmul(GroupBuilder& b, const Node& node);
Expected<Lowered<MatMulStages>> lower_matmul_nbits(GroupBuilder& b, const Node& node);
void schedule_matmul(ScheduleBuilder& s, const MatMulStages& m);

// Stage y: followers on sum(index), where the index is [outer batches.., row, column]. `joined`:
// all batches are rows, there are no outer ones, and tensors of the output's shape are seen with
// the same collapsed rows.
ProductOutput write_product(GroupBuilder& b, const Node& node, bool joined,
                            const std::function<Expr(const std::vector<Expr>& at)>& sum);

}  // namespace tw
