// One level of Strassen's algorithm, as it is defined: its stages
#pragma once
#include "ir/graph/graph.h"
#include "kernels/common/handles.h"
#include "kernels/common/lowered.h"

namespace tw {

class GroupBuilder;

struct StrassenStages {
  const char* family() const { return "strassen"; }
  bool arranged = false;  // the weights lie as the target reads them
  BufferName weights;     // seven sums of the right operand's quarters, in panels
  Stage left;             // seven sums of the left operand's quarters
  Loop left_block, left_row, left_product, left_lane;
  Stage acc;  // the seven products
  Loop acc_product, acc_row, acc_block, acc_lane, depth_block, depth_lane;
  // Loops of y. For a convolution: channels, later blocks of them and their lanes. For a matrix
  // product: its columns.
  Stage y;
  Loop image, row, block, lane, column;
};

Expected<Lowered<StrassenStages>> define_strassen(GroupBuilder& b, const Node& node);

}  // namespace tw
