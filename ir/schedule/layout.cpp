// layout t i j -> [j // 16, i, j % 16]
//   temp t: f32[8, 64]                          temp t: f32[4, 8, 16]
//   t: t[a, b] = x[a, b]                  ->    t: t[b // 16, a, b % 16] = x[a, b]
//   y: y[v, u] = t[u, v]                        y: y[v, u] = t[v // 16, u, v % 16]
//
// Moves element [i, j] of the temp to the mapped place, at all writes and reads. The new shape is
// the smallest box around the places. Any map that keeps elements apart works: blocked panels,
// transposition, an exclusive-or swizzle. Legal: a temp of constant shape. No index of the map can
// be negative. No two elements meet, which is tried point by point for each group of dimensions
// that the map mixes.
#include <algorithm>
#include <map>
#include <set>

#include "ir/schedule/nest.h"

namespace tw::sched {

namespace {

constexpr int64_t kMaxPoints = 1 << 18;  // limit of points tried for one group
constexpr int64_t kMaxExtent = int64_t{1} << 40;

std::set<std::string> vars_of(const Expr& e) {
  std::set<std::string> out;
  visit(e, [&](const Expr& n) {
    if (const auto* variable = as<expr::Var>(n)) out.insert(variable->name);
  });
  return out;
}

struct Group {
  std::set<std::string> dims;
  std::vector<Expr> map;  // the new indices that use the dims
};

std::vector<Group> groups_of(const step::Layout& s) {
  std::vector<Group> groups;
  for (const std::string& dim : s.dims) groups.push_back({{dim}, {}});
  for (const Expr& e : s.map) {
    Group joined{{}, {e}};
    const std::set<std::string> used = vars_of(e);
    std::erase_if(groups, [&](const Group& g) {
      const bool shares = std::ranges::any_of(
          g.dims, [&](const std::string& dim) { return used.contains(dim); });
      if (shares) {
        joined.dims.insert(g.dims.begin(), g.dims.end());
        joined.map.insert(joined.map.end(), g.map.begin(), g.map.end());
      }
      return shares;
    });
    if (!joined.dims.empty()) groups.push_back(std::move(joined));
  }
  return groups;
}

Error check_apart(const Group& group, const std::map<std::string, int64_t>& extents,
                  const std::string& buffer) {
  int64_t points = 1;
  for (const std::string& dim : group.dims)
    if (__builtin_mul_overflow(points, extents.at(dim), &points) || points > kMaxPoints)
      return illegal(
          "'{0}' has too many elements to show that the map keeps them apart: the limit is {1} in "
          "a group of dimensions",
          buffer, kMaxPoints);
  std::set<std::vector<int64_t>> places;
  for (int64_t p = 0; p < points; ++p) {
    std::map<std::string, int64_t, std::less<>> at;
    int64_t rest = p;
    for (const std::string& dim : group.dims) {
      at[dim] = rest % extents.at(dim);
      rest /= extents.at(dim);
    }
    std::vector<int64_t> place;
    for (const Expr& e : group.map)
      place.push_back(eval_int(e, [&](std::string_view name) { return at.find(name)->second; }));
    if (!places.insert(std::move(place)).second)
      return illegal("the map sends two elements of '{0}' to one place", buffer);
  }
  return Error::success();
}

bool divides_by_constants(const Expr& e) {
  bool good = true;
  visit(e, [&](const Expr& n) {
    const auto* quotient = as<expr::Binary>(n);
    if (!quotient) return;
    const BinaryOp op = quotient->op;
    const bool division = op == BinaryOp::div || op == BinaryOp::floor_div ||
                          op == BinaryOp::floor_mod || op == BinaryOp::mod;
    if (division) good &= as_const(quotient->b).value_or(0) > 0;
  });
  return good;
}

}  // namespace

Expected<Kernel> apply_step(const Kernel& kernel, const step::Layout& s) {
  const std::optional<BufferId> id = kernel.find_buffer(s.buffer);
  if (!id) return illegal("the kernel has no buffer '{0}'", s.buffer);
  const Buffer& buffer = kernel.buffer(*id);
  if (buffer.role != BufferRole::temp)
    return illegal(
        "'{0}' is a parameter of the kernel: its layout is given; cache_read makes a temp of it",
        s.buffer);
  if (!constant_bytes(buffer)) return illegal("the shape of '{0}' is not constant", s.buffer);
  if (s.dims.size() != buffer.shape.size())
    return illegal("'{0}' has {1} dimensions, not {2}", s.buffer, buffer.shape.size(),
                   s.dims.size());
  std::map<std::string, int64_t> extents;
  Ranges ranges;
  for (size_t d = 0; d < s.dims.size(); ++d) {
    if (!extents.emplace(s.dims[d], *as_const(buffer.shape[d])).second)
      return illegal("the dimension '{0}' is named twice", s.dims[d]);
    ranges[s.dims[d]] = {Expr(0), Expr(extents.at(s.dims[d]) - 1)};
  }
  Kernel out = kernel;
  std::vector<Expr>& shape = out.buffer(*id).shape;
  shape.clear();
  for (const Expr& e : s.map) {
    for (const std::string& name : vars_of(e))
      if (!extents.contains(name))
        return illegal("'{0}' in the map is no dimension of '{1}'", name, s.buffer);
    if (e.type() != DType::i64 || has_load(e) || !divides_by_constants(e))
      return illegal("the map must be made of integers, and divide by positive constants only");
    const Bounds bounds = constant_bounds(simplify(e, ranges), ranges);
    if (!bounds.min || !bounds.max || *bounds.min < 0 || *bounds.max >= kMaxExtent)
      return illegal("it cannot be shown that '{0}' stays in a box of '{1}'", to_string(e),
                     s.buffer);
    shape.push_back(Expr(*bounds.max + 1));
  }
  if (!constant_bytes(out.buffer(*id))) return illegal("'{0}' becomes too large", s.buffer);
  for (const Group& group : groups_of(s)) TW_TRY(check_apart(group, extents, s.buffer));
  // Placeholders that are not names, since the kernel may use the names of the dims.
  const auto hole = [](size_t d) { return "$" + std::to_string(d); };
  std::vector<Expr> map = s.map;
  for (Expr& e : map)
    for (size_t d = 0; d < s.dims.size(); ++d) e = substitute(e, s.dims[d], var(hole(d)));
  out.body = map_accesses(kernel.body, *id, [&](const std::vector<Expr>& indices) {
    std::vector<Expr> mapped = map;
    for (Expr& e : mapped)
      for (size_t d = 0; d < indices.size(); ++d) e = substitute(e, hole(d), indices[d]);
    return mapped;
  });
  out.body = simplify_tree(out.body, ranges_of(kernel, {}));
  return out;
}

}  // namespace tw::sched
