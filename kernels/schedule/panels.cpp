#include "kernels/schedule/panels.h"

namespace tw {

Expr variable(const Loop& loop) { return loop.defined() ? var(loop.name()) : Expr(0); }

}  // namespace tw
