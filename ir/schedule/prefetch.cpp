// prefetch w k 8
//   for k in 64 reduce {                     for k in 64 reduce {
//     for j in 48 vector {                     for w_k_l in 3 unroll {
//       c: c[i, j] += x[i, k] * w[k, j]  ->      prefetch w[k + 8, w_k_l * 16]
//     }                                        }
//   }                                          for j in 48 vector { c: ... }
//                                            }
//
// Each iteration prefetches what a later one reads, one element for each cache line of 64 bytes.
// With distance 0 it prefetches what it reads later itself. The last iterations prefetch elements
// that do not exist, which does no harm. The optional second number is the locality, from 0 (used
// once) to 3 (the default: into every cache). Legal: loop and distance are known. The loop's body
// reads the buffer at places that follow from its loops, and at most 64 lines of it.
//
// prefetch w j 1 over k
//   for j in 4 { for i in 2 {                      for j in 4 { for i in 2 {
//     for k in 64 reduce {                           for k in 64 reduce {
//       c: c[i, j, l] += x[i, k] * w[j, k, l]  ->      prefetch w[j + 1, 0, (i * 64 + k) * 16]
//     }                       (l in 32)                c: ...
//   } }                                              }
//                                                  } }
//
// Each iteration of j reads what the whole previous one prefetched, an equal part in each iteration
// of k. Memory then delivers at its own rate while the panel in the cache is in use. If the read
// part consists of several pieces, the outermost loops inside j whose iterations read one piece
// each prefetch their own: `prefetch x rc 1 over rl` prefetches row k0 of the next plane in
// iteration k0 of this one. Legal: one piece of the buffer results, and the loops down to k are
// known.
#include <algorithm>

#include "ir/schedule/footprint.h"

namespace tw::sched {

namespace {

constexpr int64_t kLineBytes = 64;
constexpr int64_t kMaxLines = 64;

// A run of contiguous elements. Loops go over the dimensions outside it.
struct Lines {
  size_t first = 0;   // the dimension in which the run begins
  int64_t inner = 1;  // elements under one index of that dimension
  int64_t run = 1;
};

Lines lines_of(const Buffer& buffer, const std::vector<DimFootprint>& footprints) {
  Lines lines{.first = buffer.shape.size()};
  bool whole = true;
  while (whole && lines.first > 0) {
    const DimFootprint& footprint = footprints[--lines.first];
    whole = footprint.whole || equal(footprint.extent, buffer.shape[lines.first]);
    lines.inner = lines.run;
    lines.run *= *as_const(footprint.extent);
  }
  return lines;
}

Error check_body(const std::vector<Stmt>& path) {
  TW_TRY(check_outside_instructions(path));
  for (const Stmt& around : path)
    if (const auto* loop = as<stmt::Loop>(around); loop && loop->kind == LoopKind::vector)
      return illegal("loop '{0}' is a vector loop: its body is evaluated once", loop->var);
  return Error::success();
}

Error too_many(const step::Prefetch& s, const std::string& loop, int64_t count) {
  return illegal(
      "an iteration of loop '{0}' reads {1} cache lines of '{2}', more than the {3} that can be "
      "asked for",
      loop, count, s.buffer, kMaxLines);
}

Expected<Kernel> with_asked(const Kernel& kernel, const std::vector<Stmt>& path, const Stmt& nest) {
  const Stmt body = make_sequence({nest, get<stmt::Loop>(path.back()).body});
  return with_replaced(kernel, path, with_body(path.back(), body));
}

Error around(const Kernel& kernel, const std::string& name, int64_t extent, Stmt& nest) {
  if (extent == 1) return Error::success();
  TW_TRY(check_new_loop(kernel, name));
  nest = make_loop(name, Expr(extent), std::move(nest), LoopKind::unroll);
  return Error::success();
}

// The footprint of the reads in the loop at the end of `path`, for the iteration of loop s.loop
// that is s.distance later. Error: it is unknown.
Expected<std::vector<DimFootprint>> footprints_ahead(const Kernel& kernel, const step::Prefetch& s,
                                                     const std::vector<Stmt>& path) {
  const BufferId id = *kernel.find_buffer(s.buffer);
  const std::string& loop = get<stmt::Loop>(path.back()).var;
  const std::vector<Access> readers = accesses(kernel, id, path);
  if (readers.empty()) return illegal("nothing in loop '{0}' reads '{1}'", loop, s.buffer);
  const Ranges outer = ranges_of(kernel, path);
  const std::vector<Expr>& shape = kernel.buffer(id).shape;
  std::vector<DimFootprint> footprints;
  for (size_t d = 0; d < shape.size(); ++d) {
    footprints.push_back(footprint_of_dim(readers, d, shape[d], outer));
    if (!as_const(footprints[d].extent))
      return illegal("it is not known which part of '{0}' an iteration of loop '{1}' reads",
                     s.buffer, loop);
    footprints[d].min = substitute(footprints[d].min, s.loop, var(s.loop) + Expr(s.distance));
  }
  return footprints;
}

bool one_piece(const std::vector<DimFootprint>& footprints, const Lines& lines) {
  return std::all_of(footprints.begin(), footprints.begin() + static_cast<ptrdiff_t>(lines.first),
                     [](const DimFootprint& r) { return is_const(r.extent, 1); });
}

// Spreads one piece in equal parts over the loops inside its reader, down to s.over.
Expected<Kernel> spread(const Kernel& kernel, const step::Prefetch& s,
                        const std::vector<Stmt>& path) {
  TW_ASSIGN(const std::vector<Stmt> inner, loop_path(kernel, s.over));
  if (inner.size() <= path.size() || inner[path.size() - 1] != path.back())
    return illegal("loop '{0}' is not inside of loop '{1}'", s.over, s.loop);
  TW_TRY(check_body(inner));
  const Buffer& buffer = kernel.buffer(*kernel.find_buffer(s.buffer));
  std::vector<Stmt> reader = path;
  TW_ASSIGN(std::vector<DimFootprint> footprints, footprints_ahead(kernel, s, reader));
  Lines lines = lines_of(buffer, footprints);
  while (!one_piece(footprints, lines) && reader.size() + 1 < inner.size()) {
    reader.push_back(inner[reader.size()]);
    if (!is<stmt::Loop>(reader.back())) continue;
    TW_ASSIGN(footprints, footprints_ahead(kernel, s, reader));
    lines = lines_of(buffer, footprints);
  }
  if (!one_piece(footprints, lines))
    return illegal("what an iteration of loop '{0}' reads of '{1}' is not one piece", s.loop,
                   s.buffer);
  int64_t iterations = 1;
  Expr at(0);
  for (size_t i = reader.size(); i < inner.size(); ++i) {
    const auto* loop = as<stmt::Loop>(inner[i]);
    if (!loop) continue;
    const std::optional<int64_t> extent = as_const(loop->extent);
    if (!extent || *extent < 1) return illegal("the extent of loop '{0}' is not known", loop->var);
    at = at * Expr(*extent) + var(loop->var);
    iterations *= *extent;
  }
  const int64_t step = std::max<int64_t>(1, kLineBytes / dtype_bytes(buffer.dtype));
  const int64_t part = (lines.run + iterations - 1) / iterations, count = (part + step - 1) / step;
  if (count > kMaxLines) return too_many(s, s.over, count);
  const std::string along = s.buffer + "_" + s.loop + "_l";
  std::vector<Expr> indices;
  for (const DimFootprint& footprint : footprints) indices.push_back(footprint.min);
  indices.back() = indices.back() + at * Expr(part) +
                   (count == 1 ? Expr(0) : var(along) * Expr(step));
  Stmt nest = make_stmt(
      stmt::Prefetch{*kernel.find_buffer(s.buffer), std::move(indices), s.locality});
  TW_TRY(around(kernel, along, count, nest));
  return with_asked(kernel, inner, nest);
}

}  // namespace

Expected<Kernel> apply_step(const Kernel& kernel, const step::Prefetch& s) {
  TW_ASSIGN(std::vector<Stmt> path, loop_path(kernel, s.loop));
  TW_ASSIGN(const BufferId id, buffer_named(kernel, s.buffer));
  if (s.distance < 0) return illegal("the distance {0} is negative", s.distance);
  if (s.locality < 0 || s.locality > 3)
    return illegal("the locality {0} is not 0 to 3", s.locality);
  const Buffer& buffer = kernel.buffer(id);
  if (buffer.scope == "register") return illegal("'{0}' is in registers", s.buffer);
  if (buffer.shape.empty()) return illegal("'{0}' is one element", s.buffer);
  TW_TRY(check_body(path));
  if (!s.over.empty()) return spread(kernel, s, path);
  TW_ASSIGN(const std::vector<DimFootprint> footprints, footprints_ahead(kernel, s, path));
  const Lines lines = lines_of(buffer, footprints);
  const int64_t step = std::max<int64_t>(1, kLineBytes / dtype_bytes(buffer.dtype));
  int64_t count = (lines.run + step - 1) / step;
  for (size_t d = 0; d < lines.first; ++d) count *= *as_const(footprints[d].extent);
  if (count > kMaxLines) return too_many(s, s.loop, count);

  std::vector<Expr> indices;
  const std::string prefix = s.buffer + "_" + s.loop + "_", along = prefix + "l";
  const int64_t run_lines = (lines.run + step - 1) / step;
  const Expr offset = run_lines == 1 ? Expr(0) : var(along) * Expr(step);
  int64_t inner = lines.inner;
  for (size_t d = 0; d < buffer.shape.size(); ++d) {
    const int64_t extent = *as_const(footprints[d].extent);
    if (d < lines.first) {
      indices.push_back(footprints[d].min +
                        (extent == 1 ? Expr(0) : var(prefix + std::to_string(d))));
    } else if (d == lines.first) {
      indices.push_back(footprints[d].min + floor_div(offset, Expr(inner)));
    } else {
      const Expr row = floor_mod(offset, Expr(inner));
      inner /= extent;
      indices.push_back(floor_div(row, Expr(inner)));
    }
  }
  Stmt nest = make_stmt(stmt::Prefetch{id, std::move(indices), s.locality});
  TW_TRY(around(kernel, along, run_lines, nest));
  for (size_t d = lines.first; d-- > 0;)
    TW_TRY(around(kernel, prefix + std::to_string(d), *as_const(footprints[d].extent), nest));
  return with_asked(kernel, path, nest);
}

}  // namespace tw::sched
