// Matrix products: the stages that lowering makes and the schedule uses.
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

// The last stage of a matrix product, regardless of the algorithm for its sums
struct ProductOutput {
  Stage stage;
  Loops batches;
  Loop row, column;
};

struct MatMulStages {
  const char* family() const { return "matmul"; }
  Stages copies;       // copies of operands made at run time, each a nest
  BufferName weights;  // right operand in panels: [batch.., panel, depth.., column of the panel]
  int64_t panel = 1;   // columns of a panel
  Stage acc;           // the sums, in whole panels
  Loop acc_row, acc_column;
  Loops depth;  // depth loops of acc; small integers: the loop over blocks
  // For small integers: the sums of a block, [row, block, column], and, if an instruction computes
  // them, the numbers extracted from their bytes.
  struct Blocks {
    Stage sums, numbers;
    Loop row, column, step, in_byte;       // loops of sums; numbers are in steps of some bytes
    Loop numbers_column, numbers_of_step;  // loops of numbers
    // The stages computed from the rows, in order, each with its row loop and the loop for vectors
    struct OfRows {
      Stage stage;
      Loop row, along;
    };
    std::vector<OfRows> of_rows;
  } blocks;
  Loop paired;                 // depth loop whose pairs of steps are innermost in the panels; none
  SumInstruction instruction;  // for acc, or for blocks.sums
  ProductOutput y;
};

Expected<Lowered<MatMulStages>> lower_matmul(GroupBuilder& b, const Node& node);
Expected<Lowered<MatMulStages>> lower_matmul_nbits(GroupBuilder& b, const Node& node);
void schedule_matmul(ScheduleBuilder& s, const MatMulStages& m);

// Adds stage y: followers on sum(index), where the index is [outer batches.., row, column].
// `joined`: all batches are rows, so there are no outer ones, and tensors of the output's shape get
// the same joined rows.
ProductOutput write_product(GroupBuilder& b, const Node& node, bool joined,
                            const std::function<Expr(const std::vector<Expr>& at)>& sum);

}  // namespace tw
