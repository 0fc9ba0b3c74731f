#include "kernels/arranged.h"

#include <algorithm>
#include <concepts>

#include "kernels/schedule/builder.h"

namespace tw {
namespace {

void arrange(ScheduleBuilder& s, ConvStages& m) { arrange_conv(s, m); }
void arrange(ScheduleBuilder& s, MatMulStages& m) { arrange_matmul(s, m); }
void arrange(ScheduleBuilder& s, StrassenStages& m) { arrange_strassen(s, m); }
void arrange(ScheduleBuilder& s, WinogradStages& m) { arrange_winograd(s, m); }

template <class FamilyStages>
concept Arrangeable = requires(FamilyStages m) {
  { m.arranged } -> std::convertible_to<bool>;
};

}  // namespace

Expected<ArrangedKernel> arranged(const Kernel& lowered, const KernelStages& stages,
                                  const Target& target, Choices* choices) {
  ArrangedKernel out{{}, {}, stages};
  ScheduleBuilder s(lowered, target, choices);
  std::visit(
      [&](auto& m) {
        if constexpr (Arrangeable<std::remove_cvref_t<decltype(m)>>) {
          if (!m.arranged) arrange(s, m);
          m.arranged = true;
        }
      },
      out.stages);
  TW_ASSIGN(out.steps, s.finish());
  out.run = take_out_constant_stages(out.steps.steps.empty() ? lowered : s.kernel());
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
  TW_ASSIGN(ArrangedKernel made, arranged(lowered.kernel, lowered.stages, target));
  LoweredGroup group;
  for (const ParameterSource& source : made.run.sources) {
    group.arguments.push_back(lowered.arguments[source.parameter]);
    if (source.pack) group.arguments.back().pack = source.pack;
  }
  group.kernel = std::move(made.run.kernel), group.stages = std::move(made.stages);
  return group;
}

}  // namespace tw
