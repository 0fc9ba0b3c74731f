#include "autotune/sharing.h"

#include <algorithm>

namespace tw {

double sharing(int64_t turns, int64_t cores) {
  if (turns <= 1 || cores <= 1) return 1;
  return static_cast<double>(turns) / static_cast<double>((turns + cores - 1) / cores);
}

double sharing(const Kernel& kernel, int64_t cores) {
  double least = 0;
  visit(kernel.body, [&](const Stmt& s) {
    if (s->kind != StmtKind::loop || s->loop_kind != LoopKind::parallel) return;
    const auto turns = as_const(s->extent);
    const double here = turns ? sharing(*turns, cores) : static_cast<double>(cores);
    least = least == 0 ? here : std::min(least, here);
  });
  return std::max(1.0, least);
}

}  // namespace tw
