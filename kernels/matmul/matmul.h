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
  bool arranged = false;  // the operands lie as the target reads them
  Stages copies;          // copies of operands made at run time, each a nest
  // The right operand, a constant or none as defined. Later its panels: [batch.., panel, depth..,
  // column of the panel]
  BufferName weights;
  int64_t panel = 1;  // columns of a panel
  Stage acc;          // the sums; later in whole panels
  Loop acc_row, acc_column;
  // Batches of the sums with a right operand of their own, by dimension of that
  std::vector<std::pair<size_t, Loop>> right_batches;
  // The operands' elements; the left ones count from left_zero
  DType left_type = DType::f32, right_type = DType::f32;
  int64_t left_zero = 0;
  bool right_is_matrix = true;  // the right operand has two dimensions
  bool depth_is_last = true;    // the left operand's steps of the depth are adjacent
  bool narrow_result = false;   // the sums are rounded to fewer bits
  Loops depth;                  // depth loops of acc; small integers: the loop over blocks
  // For small integers: the sums of a block, [row, block, column], and, if an instruction computes
  // them, the numbers extracted from their bytes.
  struct Blocks {
    Stage sums, numbers;
    Stage rounded, row_sums;   // rows rounded to bytes, or none; sums of the rows' blocks
    BufferName zeros, scales;  // parameters [column, block]; none: one number serves all
    Expr depth;                // steps of the depth, which may end in the last block
    Loop row, block, column;   // loops of sums
    Loop step, in_byte;        // bytes, later steps of some bytes; places in a byte
    Loop numbers_column, numbers_of_step;  // loops of numbers
    // The stages computed from the rows, in order, each with its row loop and the loop for vectors
    struct OfRows {
      Stage stage;
      Loop row, along;
    };
    std::vector<OfRows> of_rows;
  } blocks;
  bool copied_rows = false;    // rows of the left operand lie together, tile by tile
  Loop paired;                 // depth loop whose pairs of steps are innermost in the panels; none
  SumInstruction instruction;  // for acc, or for blocks.sums
  ProductOutput y;
};

// The index of element (row, column) of a matrix among the batches of the result
std::vector<Expr> matrix_index(const Shape& shape, bool transposed, const std::vector<Expr>& batch,
                               const Expr& row, const Expr& column);
// A product as it is defined: stage acc, [batch][row][column], and stage y
Lowered<MatMulStages> define_matmul(GroupBuilder& b, const Node& node);
// Lays the operands of a defined product out as the target's registers or its instruction for the
// sums want them, and lets the sums cover whole panels.
void arrange_matmul(ScheduleBuilder& s, MatMulStages& m);
// A product with weights of 2, 4 or 8 bits as it is defined, and its arrangement
Lowered<MatMulStages> define_matmul_nbits(GroupBuilder& b, const Node& node);
void arrange_matmul_nbits(ScheduleBuilder& s, MatMulStages& m);
void schedule_matmul(ScheduleBuilder& s, const MatMulStages& m);

// Adds stage y: followers on sum(index), where the index is [outer batches.., row, column].
// `joined`: all batches are rows, so there are no outer ones, and tensors of the output's shape get
// the same joined rows.
ProductOutput write_product(GroupBuilder& b, const Node& node, bool joined,
                            const std::function<Expr(const std::vector<Expr>& at)>& sum);

}  // namespace tw
