// layout t i j -> [j // 16, i, j % 16]
//   temp t: f32[8, 64]                          temp t: f32[4, 8, 16]
//   t: t[a, b] = x[a, b]                  ->    t: t[b // 16, a, b % 16] = x[a, b]
//   y: y[v, u] = t[u, v]                        y: y[v, u] = t[v // 16, u, v % 16]
//
// Moves element [i, j] of the temp to the mapped place, at all writes and reads. The new shape is
// the smallest box around the places. Any map that keeps elements apart works: blocked panels,
// transposition, an exclusive-or swizzle. Legal: a temp. No index of the map can be negative. No
// two elements meet. An index that numbers the elements of its dimensions shows that, and so do the
// quotient and the remainder of a dimension by one constant. Otherwise the dimensions that an index
// mixes are constant, and all of their points are tried.
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

using Extents = std::map<std::string, Expr>;

struct Group {
  std::set<std::string> dims;
  std::vector<Expr> map;  // the new indices that use the dims
};

// The number of elements that the index numbers, as (n * H + h) * W + w does; nullopt: it does not.
std::optional<Expr> numbered(const Expr& index, const std::set<std::string>& dims,
                             const Extents& extents) {
  Extents steps;
  Expr sum(0);
  for (const std::string& dim : dims) {
    Expr step = index;
    for (const std::string& other : dims)
      step = substitute(step, other, Expr(other == dim ? 1 : 0));
    steps[dim] = simplify(step);
    sum = sum + steps.at(dim) * var(dim);
  }
  if (!is_const(simplify(sum - index), 0)) return std::nullopt;
  Expr count(1);
  while (!steps.empty()) {
    const auto next = std::ranges::find_if(
        steps, [&](const auto& step) { return is_const(simplify(step.second - count), 0); });
    if (next == steps.end()) return std::nullopt;
    count = simplify(count * extents.at(next->first));
    steps.erase(next);
  }
  return count;
}

// A dimension's quotient or remainder by a constant
struct Part {
  std::string dim;
  BinaryOp op;
  int64_t by = 1;
};

std::optional<Part> part_of(const Expr& index) {
  const auto* part = as<expr::Binary>(index);
  if (!part || (part->op != BinaryOp::floor_div && part->op != BinaryOp::floor_mod))
    return std::nullopt;
  const std::string* dim = var_name(part->a);
  const std::optional<int64_t> by = as_const(part->b);
  if (!dim || !by || *by < 1) return std::nullopt;
  return Part{*dim, part->op, *by};
}

// True: the indices are the quotient and the remainder of one dimension.
bool cuts_a_dimension(const Group& group) {
  if (group.map.size() != 2) return false;
  const std::optional<Part> a = part_of(group.map[0]), b = part_of(group.map[1]);
  return a && b && a->dim == b->dim && a->by == b->by && a->op != b->op;
}

// The number of values of an index that only a run knows; nullopt: unknown
std::optional<Expr> free_count(const Expr& index, const Extents& extents, const Ranges& ranges) {
  const std::optional<Part> part = part_of(index);
  const auto extent = part ? extents.find(part->dim) : extents.end();
  if (extent == extents.end() || as_const(extent->second)) return std::nullopt;
  if (part->op == BinaryOp::floor_mod) return Expr(part->by);
  return simplify(ceil_div(extent->second, part->by), ranges);
}

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

Error check_apart(const Group& group, const Extents& all, const std::string& buffer) {
  if (group.map.size() == 1 && numbered(group.map[0], group.dims, all)) return Error::success();
  if (cuts_a_dimension(group)) return Error::success();
  std::map<std::string, int64_t> extents;
  for (const std::string& dim : group.dims) {
    const std::optional<int64_t> extent = as_const(all.at(dim));
    if (!extent)
      return illegal(
          "the shape of '{0}' is not constant: an index of a dimension that only a run knows must "
          "number its elements, or cut it by a constant",
          buffer);
    extents[dim] = *extent;
  }
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

// The body whose accesses of the buffer are at the mapped places
Stmt with_places(const Stmt& root, BufferId buffer, const step::Layout& s) {
  // Placeholders that are not names, since the kernel may use the names of the dims.
  const auto hole = [](size_t d) { return "$" + std::to_string(d); };
  std::vector<Expr> map = s.map;
  for (Expr& e : map)
    for (size_t d = 0; d < s.dims.size(); ++d) e = substitute(e, s.dims[d], var(hole(d)));
  return map_accesses(root, buffer, [&](const std::vector<Expr>& indices) {
    std::vector<Expr> mapped = map;
    for (Expr& e : mapped)
      for (size_t d = 0; d < indices.size(); ++d) e = substitute(e, hole(d), indices[d]);
    return mapped;
  });
}

}  // namespace

Expected<Kernel> apply_step(const Kernel& kernel, const step::Layout& s) {
  TW_ASSIGN(const BufferId id, buffer_named(kernel, s.buffer));
  const Buffer& buffer = kernel.buffer(id);
  if (buffer.role != BufferRole::temp)
    return illegal(
        "'{0}' is a parameter of the kernel: its layout is given; cache_read makes a temp of it",
        s.buffer);
  if (buffer.shape.empty()) return illegal("'{0}' has no dimensions", s.buffer);
  if (s.dims.size() != buffer.shape.size())
    return illegal("'{0}' has {1} dimensions, not {2}", s.buffer, buffer.shape.size(),
                   s.dims.size());
  Extents extents;
  Ranges ranges = ranges_of(kernel, {});
  for (size_t d = 0; d < s.dims.size(); ++d) {
    if (!extents.emplace(s.dims[d], buffer.shape[d]).second)
      return illegal("the dimension '{0}' is named twice", s.dims[d]);
    ranges[s.dims[d]] = {Expr(0), buffer.shape[d] - Expr(1)};
  }
  Kernel out = kernel;
  std::vector<Expr>& shape = out.buffer(id).shape;
  shape.clear();
  for (const Expr& e : s.map) {
    std::set<std::string> dims;
    for (const std::string& name : vars_of(e))
      if (extents.contains(name)) dims.insert(name);
      else if (std::ranges::find(kernel.symbols, name) == kernel.symbols.end())
        return illegal("'{0}' in the map is no dimension of '{1}': {2}", name, s.buffer,
                       it_has(s.dims));
    if (e.type() != DType::i64 || has_load(e) || !divides_by_constants(e))
      return illegal("the map must be made of integers, and divide by positive constants only");
    if (const std::optional<Expr> count = numbered(e, dims, extents)) {
      shape.push_back(*count);
      continue;
    }
    if (const std::optional<Expr> count = free_count(e, extents, ranges)) {
      shape.push_back(*count);
      continue;
    }
    const Bounds bounds = constant_bounds(simplify(e, ranges), ranges);
    if (!bounds.min || !bounds.max || *bounds.min < 0 || *bounds.max >= kMaxExtent)
      return illegal("it cannot be shown that '{0}' stays in a box of '{1}'", to_string(e),
                     s.buffer);
    shape.push_back(Expr(*bounds.max + 1));
  }
  if (constant_bytes(buffer) && !constant_bytes(out.buffer(id)))
    return illegal("'{0}' becomes too large", s.buffer);
  for (const Group& group : groups_of(s)) TW_TRY(check_apart(group, extents, s.buffer));
  out.body = with_places(kernel.body, id, s);
  out.body = simplify_tree(out.body, ranges_of(kernel, {}));
  return out;
}

}  // namespace tw::sched
