// Matrix products: what lowering makes of them and the schedule takes.
#pragma once
#include <cstdint>
#include <functional>

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
  Loops depth;  // of acc; of integers of few bits: blocks, their bytes, what is in a byte
  Loop paired;  // of the depth: whose pairs of steps the panels hold innermost; none
  SumInstruction instruction;
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
