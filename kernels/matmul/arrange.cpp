// Lays the right operand of a product out in panels: [batch][panel][depth][column of the panel].
// Pairs of depth steps are innermost if the target sums so. A panel is a few vectors wide, by the
// target's registers, and the last one is filled up with zeros. A free number of rows becomes whole
// register tiles, which need no checks: only the output's stores ask where the rows end.
#include <algorithm>

#include "kernels/common/register_tile.h"
#include "kernels/matmul/matmul.h"
#include "kernels/schedule/builder.h"

namespace tw {

void arrange_matmul(ScheduleBuilder& s, MatMulStages& m) {
  const Target& target = s.target();
  const DType sums = s.buffer(m.acc.buffer()).dtype;
  const int64_t lanes = std::max(1, target.lanes(dtype_bytes(sums)));
  const auto rows = s.extent(m.acc_row), depth = s.extent(m.depth[0]);
  const bool pairs = pairs_depth(target) && sums == DType::f32 && !m.narrow_result &&
                     m.depth_is_last && rows != 1 && m.weights.defined() && depth &&
                     *depth % 2 == 0;
  const auto row_bytes = depth ? std::optional(*depth * dtype_bytes(sums)) : std::nullopt;
  const RegisterTile tile = pairs ? RegisterTile{paired_rows(target, rows), kPairedVectors}
                                  : product_tile(target, lanes, rows, s.extent(m.acc_column),
                                                 row_bytes);
  m.panel = tile.vectors * lanes / (pairs ? 2 : 1);
  const Expr j = var(m.acc_column.name()), k = var(m.depth[0].name()), panel(m.panel);
  std::vector<ScheduleBuilder::PackedDim> dims;
  for (const auto& [dim, loop] : m.right_batches)
    dims.push_back({var(loop.name()), "wb" + std::to_string(dim)});
  dims.push_back({floor_div(j, panel), "wj"});
  dims.push_back({pairs ? floor_div(k, Expr(2)) : k, "wk"});
  dims.push_back({floor_mod(j, panel), "wl"});
  if (pairs) dims.push_back({floor_mod(k, Expr(2)), "wp"});
  const bool constant = m.weights.defined();
  const Stage packed =
      s.pack(m.acc, Factor::right, "w", constant ? kConstantScope : "global", dims).stage;
  if (!constant) m.copies.push_back(packed);
  m.weights = packed.buffer();
  if (pairs) m.paired = m.depth[0];
  s.pad(m.acc_column, m.panel);
  if (!rows) s.pad(m.acc_row, tile.rows);
}

}  // namespace tw
