// Reductions, the normalisations built on them, and running sums: the stages that lowering makes
// and the schedule uses.
#pragma once
#include "ir/graph/graph.h"
#include "kernels/common/handles.h"
#include "kernels/common/lowered.h"
#include "kernels/elementwise/elementwise.h"

namespace tw {

class GroupBuilder;
class ScheduleBuilder;

// The reduction of a row: partial results in a vector's lanes, and the total that combines them. No
// partial stage: the row is short, or the axes are not the last ones.
struct Reduction {
  Stage part, total;
};

struct ReduceStages {
  const char* family() const { return "reduce"; }
  std::vector<Reduction> reductions;
  Stage reduced;       // total of a Reduce operator
  Layout blocks;       // the operand's blocks in it; plain: none
  Stage exponentials;  // for a softmax
  Stage y;

  bool is_part(const Stage& stage) const;
  // The total stage for the partial stage `part`; none: it is no partial stage.
  Stage total_of(const Stage& part) const;
  bool has_parts() const;
};

// Cuts the total into the blocks of the operand.
void arrange_reduce(ScheduleBuilder& s, ReduceStages& m);
Expected<Lowered<ReduceStages>> define_reduce(GroupBuilder& b, const Node& node);
Expected<Lowered<ReduceStages>> define_arg_reduce(GroupBuilder& b, const Node& node);
Expected<Lowered<ReduceStages>> define_softmax(GroupBuilder& b, const Node& node);
Expected<Lowered<ReduceStages>> define_layer_norm(GroupBuilder& b, const Node& node);
Expected<Lowered<ElementwiseStages>> define_cumulate(GroupBuilder& b, const Node& node);
void schedule_reduce(ScheduleBuilder& s, const ReduceStages& m);

}  // namespace tw
