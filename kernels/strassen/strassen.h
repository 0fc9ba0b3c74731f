// One level of Strassen's algorithm, for matrix products and pointwise convolutions.
#pragma once
#include "ir/graph/graph.h"
#include "ir/target.h"
#include "kernels/common/handles.h"
#include "kernels/common/lowered.h"

namespace tw {

class TargetBuilder;
class ScheduleBuilder;

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

// True: the algorithm can compute the node, a matrix product with a constant right operand or a
// pointwise convolution of one image.
bool strassen_applies(const Graph& graph, const Node& node, const Target& target);
// The register tile for half of the rows: strassen_vectors are its channel blocks, strassen_rows
// its rows for that many blocks.
int64_t strassen_vectors(int64_t half_rows, int64_t blocks, const Target& target);
int64_t strassen_rows(int64_t half_rows, int64_t vectors, const Target& target);

// Lays the sums of the right operand's quarters out in panels.
void arrange_strassen(ScheduleBuilder& s, StrassenStages& m);
Expected<Lowered<StrassenStages>> lower_strassen(TargetBuilder& b, const Node& node);
void schedule_strassen(ScheduleBuilder& s, const StrassenStages& m);

}  // namespace tw
