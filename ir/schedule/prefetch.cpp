// prefetch w k 8
//   for k in 64 reduce { for j in 48 vector {          for k in 64 reduce {
//     c: c[i, j] += x[i, k] * w[k, j]            ->      for w_k_l in 3 unroll { prefetch w[k + 8, w_k_l * 16] }
//   } }                                                  for j in 48 vector { c: c[i, j] += x[i, k] * w[k, j] }
//                                                      }
// Each iteration asks for what a later one will read, one element a cache line of 64 bytes. The last iterations ask for what is not there, which
// does no harm. The optional second number is the locality, 0 (used once) to 3 (default: into every cache).
// Legal: loop and distance known, the loop's body reads the buffer at places that follow from its loops, and no more than 64 lines of it.
#include <algorithm>

#include "ir/schedule/regions.h"

namespace tw::sched {

namespace {

constexpr int64_t kLineBytes = 64;
constexpr int64_t kMaxLines = 64;

// A run of elements next to each other, and loops over the dimensions outside of it.
struct Lines {
  size_t first = 0;      // the dimension where the run begins
  int64_t inner = 1;     // elements of one index of it
  int64_t run = 1;       // elements
};

Lines lines_of(const Buffer& buffer, const std::vector<DimRegion>& regions) {
  Lines lines{.first = buffer.shape.size()};
  bool whole = true;
  while (whole && lines.first > 0) {
    const DimRegion& region = regions[--lines.first];
    whole = region.whole || equal(region.extent, buffer.shape[lines.first]);
    lines.inner = lines.run;
    lines.run *= *as_const(region.extent);
  }
  return lines;
}

}  // namespace

Expected<Kernel> apply_step(const Kernel& kernel, const step::Prefetch& s) {
  TW_ASSIGN(std::vector<Stmt> path, loop_path(kernel, s.loop));
  const std::optional<BufferId> id = kernel.find_buffer(s.buffer);
  if (!id) return illegal("the kernel has no buffer '{0}'", s.buffer);
  if (s.distance < 1) return illegal("the distance {0} is not positive", s.distance);
  if (s.locality < 0 || s.locality > 3) return illegal("the locality {0} is not 0 to 3", s.locality);
  const Buffer& buffer = kernel.buffer(*id);
  if (buffer.scope == "register") return illegal("'{0}' is in registers", s.buffer);
  if (buffer.shape.empty()) return illegal("'{0}' is one element", s.buffer);
  for (const Stmt& around : path)
    if (around->loop_kind == LoopKind::vector) return illegal("loop '{0}' is a vector loop: its body is evaluated once", around->var);
  const std::vector<Access> readers = accesses(kernel, *id, path);
  if (readers.empty()) return illegal("nothing in loop '{0}' reads '{1}'", s.loop, s.buffer);

  const Ranges outer = ranges_of(kernel, path);
  std::vector<DimRegion> regions;
  for (size_t d = 0; d < buffer.shape.size(); ++d) {
    regions.push_back(region_of_dim(readers, d, buffer.shape[d], outer));
    if (!as_const(regions[d].extent)) return illegal("it is not known which part of '{0}' an iteration of loop '{1}' reads", s.buffer, s.loop);
    regions[d].min = substitute(regions[d].min, s.loop, var(s.loop) + Expr(s.distance));
  }
  const Lines lines = lines_of(buffer, regions);
  const int64_t step = std::max<int64_t>(1, kLineBytes / dtype_bytes(buffer.dtype));
  int64_t count = (lines.run + step - 1) / step;
  for (size_t d = 0; d < lines.first; ++d) count *= *as_const(regions[d].extent);
  if (count > kMaxLines) return illegal("an iteration of loop '{0}' reads {1} cache lines of '{2}', more than the {3} that can be asked for", s.loop, count, s.buffer, kMaxLines);

  StmtNode node{.kind = StmtKind::prefetch, .buffer = *id, .count = s.locality};
  const std::string prefix = s.buffer + "_" + s.loop + "_", along = prefix + "l";
  const int64_t run_lines = (lines.run + step - 1) / step;
  const Expr offset = run_lines == 1 ? Expr(0) : var(along) * Expr(step);
  int64_t inner = lines.inner;
  for (size_t d = 0; d < buffer.shape.size(); ++d) {
    const int64_t extent = *as_const(regions[d].extent);
    if (d < lines.first) {
      node.indices.push_back(regions[d].min + (extent == 1 ? Expr(0) : var(prefix + std::to_string(d))));
    } else if (d == lines.first) {
      node.indices.push_back(regions[d].min + floor_div(offset, Expr(inner)));
    } else {
      const Expr row = floor_mod(offset, Expr(inner));
      inner /= extent;
      node.indices.push_back(floor_div(row, Expr(inner)));
    }
  }
  Stmt nest = make_stmt(std::move(node));
  const auto around = [&](const std::string& name, int64_t extent) -> Error {
    if (extent == 1) return Error::success();
    TW_TRY(check_new_loop(kernel, name));
    nest = make_loop(name, Expr(extent), std::move(nest), LoopKind::unroll);
    return Error::success();
  };
  TW_TRY(around(along, run_lines));
  for (size_t d = lines.first; d-- > 0;) TW_TRY(around(prefix + std::to_string(d), *as_const(regions[d].extent)));
  return with_replaced(kernel, path, with_body(*path.back(), make_block({nest, path.back()->body[0]})));
}

}  // namespace tw::sched
