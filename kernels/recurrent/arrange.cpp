// Arranges the operands of recurrent steps.
//
// The weights lie in panels [cells/P][K][gate][P], so that one panel's sums are all gates of P
// cells. The sums are in the same order, and the rows of the states are filled up to whole panels.
//
// For integers, the states count from the number that the target's instruction wants, in its type,
// and the panels have the steps of the depth that it takes innermost: [cells/P][K][gate][P][steps].
// The range of the states is found by the lanes of a vector.
#include <algorithm>

#include "kernels/common/integer_product.h"
#include "kernels/recurrent/recurrent.h"
#include "kernels/schedule/operands.h"

namespace tw {
namespace {

// A loop's name with another letter at the end: aj, al
std::string ending_in(char letter, const Loop& loop) {
  std::string name = loop.name();
  name.back() = letter;
  return name;
}

class RecurrentArrangement {
 public:
  RecurrentArrangement(ScheduleBuilder& s, RecurrentStages& m)
      : s_(s), m_(m), lanes_(lanes_of(m.phases.front().sums)), panel_(panel_cells()) {}

  void run() {
    if (m_.rounded.defined()) {
      for (RecurrentStages::Range& end : m_.ends) cut_in_lanes(end);
      product_ = integer_product_from_anywhere(s_.target(), {DType::u8, 0},
                                               m_.phases.front().weight_type, {lanes_, 0, 1});
      count_states(m_.phases.front());
    }
    Loops cells = m_.first_cells;
    for (RecurrentStages::Phase& phase : m_.phases) {
      cells.push_back(phase.cells.cell);
      pack_weights(phase, &phase == &m_.phases.front() ? "w" : "wn");
      phase.lane = cut_in_panels(phase.sums, phase.cell);
    }
    // Cells that only fill the last panel are 0.
    s_.pad_zeros(cells, panel_);
    for (RecurrentStages::Phase& phase : m_.phases)
      phase.cells.lane = s_.split(phase.cells.cell, panel_, Tail::guard, phase.cells.cell.name(),
                                  ending_in('l', phase.cells.cell))
                             .inner;
    if (product_.depth > 1) split_depth(m_.phases.front());
    m_.instruction = product_.sums(innermost_);
  }

 private:
  int64_t lanes_of(const Stage& stage) const {
    return std::max(1, s_.target().lanes(dtype_bytes(s_.buffer(stage.buffer()).dtype)));
  }

  // Four vectors for all gates, or a few more. A single cell needs no vector.
  int64_t panel_cells() const {
    if (s_.extent(m_.phases.front().cell) == 1) return 1;
    const int64_t gates = s_.extent(m_.phases.front().gate).value_or(1);
    return lanes_ * ((4 + gates - 1) / gates);
  }

  void cut_in_lanes(RecurrentStages::Range& end) {
    const Loop& cell = end.reduce.back();
    const auto cut = s_.split(cell, lanes_, Tail::guard, cell.name(), ending_in('l', cell));
    end.stage = s_.rfactor(end.stage, cut.inner, end.stage.label() + "s");
    end.lane = cut.inner;
  }

  // Lets the states count from the instruction's number, in its type, with whole groups of steps.
  void count_states(const RecurrentStages::Phase& phase) {
    const int64_t zero = product_.left.zero;
    const bool constant = phase.weights.defined();
    const Stage excess = s_.recount(phase.sums, Factor::left, zero, "corr",
                                    constant ? kConstantScope : "global");
    const Loop cell = s_.moved(excess, phase.cell);
    const Loops reduce = s_.reduce_loops_of(excess);
    const Loop lane = cut_in_panels(excess, cell);
    if (!constant && lane.defined()) m_.ends.push_back({excess, lane, reduce});
    if (!product_.defined()) return;
    const bool narrow = product_.type != DType::u8;
    const int64_t cells = s_.extent(phase.depth).value_or(1);
    if (narrow) s_.narrow(phase.sums, Factor::left, product_.type);
    if (!narrow && cells % product_.depth == 0) return;
    const auto copy = s_.pack(
        phase.sums, Factor::left, "xp", "global",
        {{variable(phase.batch), "xi"}, {filled_up(variable(phase.depth), product_.depth), "xk"}});
    s_.compute_inline(m_.rounded);
    m_.rounded = copy.stage, m_.rounded_cell = copy.loops.back();
  }

  void pack_weights(RecurrentStages::Phase& phase, const std::string& name) {
    const Expr j = variable(phase.cell), k = variable(phase.depth), panel(panel_),
               together(product_.depth);
    const bool steps = product_.depth > 1;
    std::vector<ScheduleBuilder::PackedDim> dims = {
        {floor_div(j, panel), name + "j"},
        {steps ? floor_div(k, together) : k, name + "k"},
        {variable(phase.gate), name + "g"},
        {floor_mod(j, panel), name + "l"}};
    if (steps) dims.push_back({floor_mod(k, together), name + "s"});
    const bool constant = phase.weights.defined();
    const Stage packed =
        s_.pack(phase.sums, Factor::right, name, constant ? kConstantScope : "global", dims).stage;
    if (!constant) m_.copies.push_back(packed);
    phase.weights = packed.buffer();
  }

  // Makes panels of a buffer's cells, with a loop over a panel's; none: the loop is absent.
  Loop cut_in_panels(const Stage& stage, const Loop& cell) {
    if (!s_.has(cell)) return {};
    const Loops loops = s_.spatial_loops_of(stage);
    const auto dim = std::ranges::find(loops, cell) - loops.begin();
    s_.block(stage.buffer(), dim, panel_, ending_in('l', cell));
    return s_.spatial_loops_of(stage).back();
  }

  // Makes the steps that an instruction sums loops of their own.
  void split_depth(RecurrentStages::Phase& phase) {
    s_.pad_zeros(phase.depth, product_.depth);
    const Loop k = phase.depth;
    innermost_ = s_.split(k, product_.depth, Tail::guard, k.name(), ending_in('p', k)).inner;
  }

  ScheduleBuilder& s_;
  RecurrentStages& m_;
  int64_t lanes_, panel_;
  IntegerProduct product_;
  Loop innermost_;  // the loop over adjacent depth steps
};

}  // namespace

void arrange_recurrent(ScheduleBuilder& s, RecurrentStages& m) { RecurrentArrangement(s, m).run(); }

}  // namespace tw
