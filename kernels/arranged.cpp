#include "kernels/arranged.h"

#include <algorithm>
#include <utility>

#include "kernels/device/tiles.h"
#include "kernels/schedule/builder.h"

namespace tw {
namespace {

void arrange(ScheduleBuilder& s, ConvStages& m) { arrange_conv(s, m); }
void arrange(ScheduleBuilder& s, MatMulStages& m) {
  if (m.blocks.sums.defined()) arrange_matmul_nbits(s, m);
  else arrange_matmul(s, m);
}
void arrange(ScheduleBuilder& s, RecurrentStages& m) { arrange_recurrent(s, m); }
void arrange(ScheduleBuilder& s, StrassenStages& m) { arrange_strassen(s, m); }
void arrange(ScheduleBuilder& s, WinogradStages& m) { arrange_winograd(s, m); }

// A single stage whose values all lie at its own points needs one loop.
void arrange(ScheduleBuilder& s, ElementwiseStages&) {
  const Stages all = s.stages();
  if (all.size() == 1 && s.buffer(all.front().buffer()).shape.size() != 1)
    s.flatten(all.front(), "i0");
}

// Devices whose threads share no memory take it as it is defined.
void arrange(ScheduleBuilder& s, AttentionStages& m) {
  if (s.target().axes.empty()) arrange_attention(s, m);
}

void arrange(ScheduleBuilder& s, PoolStages& m) { arrange_pool(s, m); }
void arrange(ScheduleBuilder& s, ReduceStages& m) { arrange_reduce(s, m); }

template <class FamilyStages>
void arrange_once(ScheduleBuilder& s, FamilyStages& m) {
  if constexpr (requires { m.arranged; }) {
    if (std::exchange(m.arranged, true)) return;
  }
  if constexpr (requires { arrange(s, m); }) arrange(s, m);
}

// The form in which a device's threads compute a kernel; none: a form of processors
using ThreadForm = std::variant<std::monostate, BlockTile, WindowStages>;

ThreadForm form_for_threads(const ScheduleBuilder& s, const KernelStages& stages) {
  if (s.target().axes.empty()) return {};
  const auto* conv = std::get_if<ConvStages>(&stages);
  const std::optional<BlockTile> tile = std::visit(
      [&](const auto& m) -> std::optional<BlockTile> {
        if constexpr (requires { tile_of(s, m); })
          if (!m.arranged) return tile_of(s, m);
        return std::nullopt;
      },
      stages);
  if (tile) return *tile;
  if (conv && !conv->arranged)
    if (auto windows = windows_of(s, *conv)) return *windows;
  return {};
}

KernelStages arranged_for_threads(ScheduleBuilder& s, const KernelStages& stages,
                                  const ThreadForm& form) {
  if (const auto* windows = std::get_if<WindowStages>(&form))
    return arrange_in_windows(s, std::get<ConvStages>(stages), *windows);
  return std::visit(
      [&](const auto& m) -> KernelStages {
        if constexpr (requires { arrange_in_tiles(s, m, BlockTile()); })
          return arrange_in_tiles(s, m, std::get<BlockTile>(form));
        TW_UNREACHABLE("a family without tiles");
      },
      stages);
}

// Steps for the layouts of the parameters, which are the first buffers
void lay_out(ScheduleBuilder& s, const LoweredGroup& lowered) {
  for (size_t i = 0; i < lowered.arguments.size(); ++i)
    if (const Layout& layout = lowered.arguments[i].layout; !layout.plain())
      s.block(s.name_of(BufferId{static_cast<int32_t>(i)}), layout.axis, layout.block);
}

}  // namespace

Expected<Schedule> laid_out(const LoweredGroup& lowered, const Target& target) {
  ScheduleBuilder s(lowered.kernel, target);
  lay_out(s, lowered);
  return s.finish();
}

Error check_layouts(const LoweredGroup& lowered, const Schedule& schedule) {
  for (size_t i = 0; i < lowered.arguments.size(); ++i) {
    const std::string& name = lowered.kernel.buffers[i].name;
    std::vector<Layout> found;
    for (const step::Block& block : blocks_of(schedule, name))
      found.push_back({static_cast<int>(block.dim), block.factor});
    const Layout& wanted = lowered.arguments[i].layout;
    if (wanted.plain() ? found.empty() : found == std::vector{wanted}) continue;
    return make_error(DiagCode::illegal_schedule,
                      "the schedule does not lay '{0}' out as its tensor is, {1}", name,
                      wanted.plain() ? std::string("without blocks")
                                     : llvm::formatv("in blocks of {0} along dimension {1}",
                                                     wanted.block, wanted.axis)
                                           .str());
  }
  return Error::success();
}

Expected<RunKernel> scheduled_run(const LoweredGroup& lowered, const Schedule& schedule,
                                  const Target& target) {
  TW_TRY(check_layouts(lowered, schedule));
  return apply_to_run(lowered.kernel, schedule, &target);
}

Expected<ArrangedKernel> arranged(const LoweredGroup& lowered, const Target& target,
                                  Choices* choices) {
  ArrangedKernel out{{}, {}, lowered.stages};
  ScheduleBuilder s(lowered.kernel, target, choices);
  const ThreadForm form = form_for_threads(s, out.stages);
  const bool for_threads = form.index() > 0;
  if (auto* conv = std::get_if<ConvStages>(&out.stages); conv && !conv->arranged && !for_threads)
    merge_groups(s, *conv);
  lay_out(s, lowered);
  if (for_threads) out.stages = arranged_for_threads(s, out.stages, form);
  else std::visit([&](auto& m) { arrange_once(s, m); }, out.stages);
  TW_ASSIGN(out.steps, s.finish());
  out.run = take_out_constant_stages(s.kernel());
  if (choices) choices->keep(nullptr);
  return out;
}

Schedule continued(const ArrangedKernel& begun, const Schedule& rest, Choices* choices) {
  if (choices && choices->scheduled())
    choices->keep(std::make_shared<const RunKernel>(joined(begun.run, *choices->scheduled())));
  Schedule whole = begun.steps;
  std::ranges::copy(rest.steps, std::back_inserter(whole.steps));
  return whole;
}

Expected<LoweredGroup> arranged_group(const LoweredGroup& lowered, const Target& target) {
  TW_ASSIGN(ArrangedKernel made, arranged(lowered, target));
  LoweredGroup group;
  for (const ParameterSource& source : made.run.sources) {
    group.arguments.push_back(lowered.arguments[source.parameter]);
    group.arguments.back().layout = {};
    if (source.pack) group.arguments.back().pack = source.pack;
  }
  group.kernel = std::move(made.run.kernel), group.stages = std::move(made.stages);
  return group;
}

}  // namespace tw
