#include "autotune/dataset/split.h"

#include <algorithm>
#include <cmath>

#include "ir/graph/queries.h"

namespace tw {

TaskShape shape_of(const ParsedTask& task) {
  const Node& node = task.graph.node(task.group.anchor);
  TaskShape out{op_info(node.attrs).name, {}};
  const auto add = [&](ValueId value) {
    if (!value.valid()) return;
    for (const Expr& extent : task.graph.value(value).type.shape)
      out.log_extents.push_back(
          std::log2(std::max<double>(1, static_cast<double>(as_const(extent).value_or(1)))));
  };
  for (const ValueId input : node.inputs) add(input);
  add(node.output);
  if (const auto* conv = get_if<op::Conv>(&node); conv && conv->group > 1) out.kind += " grouped";
  return out;
}

bool near_duplicates(const TaskShape& a, const TaskShape& b) {
  constexpr double kNear = 0.5;
  return a.kind == b.kind &&
         std::ranges::equal(a.log_extents, b.log_extents,
                            [](double x, double y) { return std::abs(x - y) <= kNear; });
}

}  // namespace tw
