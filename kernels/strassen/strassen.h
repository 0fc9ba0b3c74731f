// One level of Strassen's algorithm (kernels/algorithms/strassen.h) on a target: for matrix
// products and pointwise convolutions
#pragma once
#include "ir/graph/graph.h"
#include "ir/target.h"
#include "kernels/algorithms/strassen.h"

namespace tw {

class ScheduleBuilder;

// True: the algorithm can compute the node, a matrix product with a constant right operand or a
// pointwise convolution of one image.
bool strassen_applies(const Graph& graph, const Node& node, const Target& target);
// The register tile for half of the rows: strassen_vectors are its channel blocks, strassen_rows
// its rows for that many blocks.
int64_t strassen_vectors(int64_t half_rows, int64_t blocks, const Target& target);
int64_t strassen_rows(int64_t half_rows, int64_t vectors, const Target& target);

// Lays the sums of the right operand's quarters out in panels.
void arrange_strassen(ScheduleBuilder& s, StrassenStages& m);
void schedule_strassen(ScheduleBuilder& s, const StrassenStages& m);

}  // namespace tw
