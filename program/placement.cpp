#include "program/placement.h"

#include "ir/graph/graph.h"

namespace tw {

bool finds_rows(const Target& device, const Expr& bytes) {
  constexpr int64_t kBegins = 64;  // alignment of buffers in bytes
  return !device.axes.empty() || is_const(simplify_dim(floor_mod(bytes, Expr(kBegins))), 0);
}

}  // namespace tw
