// Index expressions of a nest, for given values of the loops around it: sums of multiples of its
// own loops, and the box that its conditions leave.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/kernel/kernel.h"
#include "ir/simplify.h"

namespace tw::vdla {

using Values = std::map<std::string, int64_t>;  // values of the loops around the nest

// A perfect nest: loops with constant extents and conditions around one statement. Conditions leave
// an interval of each loop.
struct NestLoop {
  std::string var;
  int64_t extent = 1;
  int64_t first = 0, end = 1;  // the interval where the conditions hold
  AxisRole role = AxisRole::spatial;
};
struct Nest {
  std::vector<NestLoop> loops;  // outermost first
  Ranges ranges;
  bool empty = false;  // true: some condition never holds
  Stmt leaf;           // a store or an intrinsic's block
};

struct Affine {
  int64_t base = 0;
  std::vector<int64_t> strides;  // by loop of the nest
  int64_t at(const std::vector<int64_t>& point) const;
};

// nullopt: not such a sum.
std::optional<Affine> affine(const Expr& e, const Values& values, const Nest& nest);

// A sum of multiples of any loops, including those around the nest, so that it holds for all their
// values
struct Sum {
  int64_t base = 0;
  std::map<std::string, int64_t> strides;
};
// The element of a buffer with constant shape, row-major. nullopt: not such a sum, or one only for
// given values of the enclosing loops.
std::optional<Sum> flat_sum(const Buffer& buffer, const std::vector<Expr>& indices,
                            const Nest& nest);
std::optional<Affine> affine(const Sum& sum, const Values& values, const Nest& nest);
std::optional<Affine> flat_affine(const Buffer& buffer, const std::vector<Expr>& indices,
                                  const Values& values, const Nest& nest);

// The nest from `s` down. Conditions around the leaf are not applied yet. nullopt: it has more than
// one statement.
std::optional<Nest> nest_of(const Stmt& s, std::vector<Expr>* conditions);
// Narrows the nest's intervals. False: the condition depends on several loops.
bool restrict(Nest& nest, const Expr& condition, const Values& values);

}  // namespace tw::vdla
