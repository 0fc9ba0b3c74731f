// Reductions, the normalisations built on them, and running sums.
#pragma once
#include "ir/graph/graph.h"
#include "kernels/common/handles.h"
#include "kernels/common/lowered.h"
#include "kernels/elementwise/elementwise.h"

namespace tw {

class GroupBuilder;
class ScheduleBuilder;

// Of a row: the partial results in a vector's lanes, folded into the total. No partial ones: a
// short row, or axes that are not the last ones.
struct Reduction {
  Stage part, total;
};

struct ReduceStages {
  const char* family() const { return "reduce"; }
  std::vector<Reduction> reductions;
  Stage reduced;       // the total of a Reduce operator
  Stage exponentials;  // of a softmax
  Stage y;

  bool is_part(const Stage& stage) const;
  // Of the reduction with such partial results; none: they are no partial results.
  Stage total_of(const Stage& part) const;
  bool has_parts() const;  // of any reduction
};

Expected<Lowered<ReduceStages>> lower_reduce(GroupBuilder& b, const Node& node);
Expected<Lowered<ReduceStages>> lower_arg_reduce(GroupBuilder& b, const Node& node);
Expected<Lowered<ReduceStages>> lower_softmax(GroupBuilder& b, const Node& node);
Expected<Lowered<ReduceStages>> lower_layer_norm(GroupBuilder& b, const Node& node);
Expected<Lowered<ElementwiseStages>> lower_cumulate(GroupBuilder& b, const Node& node);
void schedule_reduce(ScheduleBuilder& s, const ReduceStages& m);

}  // namespace tw
