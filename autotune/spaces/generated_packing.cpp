// Copies the part of an operand that a block of tiles reads. The copy is dense, in the order in
// which the tiles read it, and is made once for all tiles below a loop.
#include <algorithm>

#include "autotune/spaces/generated.h"

namespace tw::generated {
namespace {

constexpr int64_t kMostCopied = 64;  // most elements in one vector of a copy

// A dimension that one loop of the tile walks, and the number of its iterations in a panel
struct Panel {
  size_t dim = 0;
  int64_t width = 1;
};
Panel panel_of(const ScheduleBuilder& s, const Nest& sum, const Stage& stage,
               const Operand& operand) {
  for (auto loop = sum.spatial.rbegin(); loop != sum.spatial.rend(); ++loop) {
    const int64_t width = s.extent(s.moved(stage, *loop)).value_or(1);
    for (size_t d = 0; width > 1 && d < operand.at.size(); ++d)
      if (is_var(operand.at[d], loop->name())) return {d, width};
  }
  return {};
}

// Lays panels one after the other: [.., dim // width, ..., dim % width].
void lay_in_panels(ScheduleBuilder& s, const Stage& copy, const Panel& panel) {
  std::vector<std::string> names;
  std::vector<Expr> map;
  for (size_t d = 0; d < s.buffer(copy.buffer()).shape.size(); ++d)
    names.push_back("d" + std::to_string(d));
  map.push_back(floor_div(var(names[panel.dim]), Expr(panel.width)));
  for (size_t d = 0; d < names.size(); ++d)
    if (d != panel.dim) map.push_back(var(names[d]));
  map.push_back(floor_mod(var(names[panel.dim]), Expr(panel.width)));
  s.layout(copy.buffer(), names, map);
}

// Maps the copy's own loops below `at`: `innermost`, if it is one of them, becomes the last, and
// the last one is vectorized.
void map_copy(ScheduleBuilder& s, const Stage& copy, const Loop& at, const Loop& innermost) {
  Loops loops = loops_below(s, copy, at);
  if (loops.empty()) return;
  Loop lane = loops.back();
  if (const auto found = std::ranges::find(loops, innermost); found != loops.end()) {
    lane = innermost;
    loops.erase(found);
    loops.push_back(lane);
    s.reorder(loops);
  }
  const int64_t lanes = s.target().lanes(dtype_bytes(s.buffer(copy.buffer()).dtype));
  if (s.extent(lane).value_or(kMostCopied + 1) > kMostCopied)
    lane = s.split(lane, lanes, Tail::guard, lane.name() + "_o", lane.name() + "_v").inner;
  s.vectorize(lane);
}

bool reads(const ScheduleBuilder& s, const Stage& stage, const BufferName& buffer) {
  bool found = false;
  visit(s.store_of(stage)->value, [&](const Expr& e) {
    const auto* load = as<expr::Load>(e);
    found |= load && s.name_of(load->buffer) == buffer;
  });
  return found;
}

}  // namespace

std::vector<Operand> operands_of(const Kernel& kernel, const Target& target, const Nest& sum) {
  std::vector<Operand> operands;
  const ScheduleBuilder as_lowered(kernel, target);
  visit(sum.store->value, [&](const Expr& e) {
    const auto* load = as<expr::Load>(e);
    if (!load) return;
    const BufferName name = as_lowered.name_of(load->buffer);
    if (std::ranges::find(operands, name, &Operand::name) != operands.end()) return;
    ScheduleBuilder tried = as_lowered;
    tried.cache_read(name, sum.stage, sum.stage.label() + "_copy", "stack");
    const bool constant = kernel.buffer(load->buffer).role == BufferRole::constant;
    if (tried.sound()) operands.push_back({name, load->indices, constant});
  });
  return operands;
}

Loops loops_below(const ScheduleBuilder& s, const Stage& stage, const Loop& at) {
  Loops loops = s.loops_of(stage);
  const auto found = std::ranges::find(loops, at);
  if (found != loops.end()) loops.erase(loops.begin(), found + 1);
  return loops;
}

Loops pack_operands(ScheduleBuilder& s, const Nest& sum, const Stage& stage, const Loops& around) {
  constexpr int64_t kMostLevels = 4;
  Loops shared = around;
  for (const Operand& operand : sum.operands) {
    // Lowering has already laid out constants for the target.
    if (s.rules() && operand.constant) continue;
    const std::string of = stage.label() + "_" + operand.name.name();
    const int64_t levels = std::min<int64_t>(kMostLevels,
                                             2 * static_cast<int64_t>(sum.spatial.size()));
    const auto level = static_cast<size_t>(s.choose("pack_" + of, 0, counted(1, levels)));
    const bool panels = s.choose_switch("panel_" + of, true);
    if (level == 0 || !s.sound() || !reads(s, stage, operand.name)) continue;
    const size_t outside = around.size() - std::min(level, around.size());
    const Loop& at = around[outside];
    const Panel panel = panel_of(s, sum, stage, operand);
    const Stage copy = s.cache_read(operand.name, stage, of + "_pack", "stack");
    s.compute_at(copy, at);
    if (!s.sound()) return shared;
    keep_near(s, copy);
    const Expr index = s.store_of(copy)->indices[panel.dim];
    const auto* walks = as<expr::Var>(index);
    const bool laid = panels && panel.width > 1;
    if (laid) lay_in_panels(s, copy, panel);
    map_copy(s, copy, at, laid && walks ? s.loop_of(walks->name) : Loop());
    shared.resize(std::min(shared.size(), outside + 1));
  }
  return shared;
}

}  // namespace tw::generated
