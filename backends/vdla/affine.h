// Index expressions of a nest once the loops around it have values: sums of multiples of its own
// loops, and the box that its conditions leave.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/kernel/kernel.h"
#include "ir/simplify.h"

namespace tw::vdla {

using Values = std::map<std::string, int64_t>;  // of the loops around

// A perfect nest: loops with constant extents and conditions around one statement. Conditions leave
// of each loop an interval.
struct NestLoop {
  std::string var;
  int64_t extent = 1;
  int64_t first = 0, end = 1;  // where the conditions hold
  AxisRole role = AxisRole::spatial;
};
struct Nest {
  std::vector<NestLoop> loops;  // outermost first
  Ranges ranges;
  bool empty = false;  // some condition never holds
  Stmt leaf;           // a store or an intrinsic's block
};

struct Affine {
  int64_t base = 0;
  std::vector<int64_t> strides;  // by loop of the nest
  int64_t at(const std::vector<int64_t>& point) const;
};

// nullopt: no such sum.
std::optional<Affine> affine(const Expr& e, const Values& values, const Nest& nest);

// A sum of multiples of any loops, those around the nest too: what holds for all their values.
struct Sum {
  int64_t base = 0;
  std::map<std::string, int64_t> strides;
};
// The element of a buffer of constant shape, row-major. nullopt: no such sum, or one only once the
// loops around have values.
std::optional<Sum> flat_sum(const Buffer& buffer, const std::vector<Expr>& indices,
                            const Nest& nest);
std::optional<Affine> affine(const Sum& sum, const Values& values, const Nest& nest);
std::optional<Affine> flat_affine(const Buffer& buffer, const std::vector<Expr>& indices,
                                  const Values& values, const Nest& nest);

// The nest from `s` down; nullopt: there is more than one statement in it. Conditions around the
// leaf are not applied yet.
std::optional<Nest> nest_of(const Stmt& s, std::vector<Expr>* conditions);
// Narrows the nest's intervals. False: a condition is of several loops.
bool restrict(Nest& nest, const Expr& condition, const Values& values);

}  // namespace tw::vdla
