// Random integer expressions over i, j, k (constant ranges), n (a symbol) and m (0 .. n-1), for
// property tests.
#pragma once
#include <map>
#include <random>
#include <string>

#include "ir/simplify.h"

namespace tw::testing {

class RandomExprs {
 public:
  explicit RandomExprs(uint64_t seed) : rng_(seed) {
    for (const char* name : {"i", "j", "k"}) {
      int64_t low = pick(3) == 0 ? -int64_t(pick(6)) : 0;
      ranges_[name] = {Expr(low), Expr(low + int64_t(pick(20)))};
    }
    ranges_["n"] = {Expr(1), Expr()};
    ranges_["m"] = {Expr(0), var("n") - 1};
  }
  const Ranges& ranges() const { return ranges_; }
  size_t pick(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(rng_); }
  int64_t between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(rng_);
  }

  Expr variable() {
    static constexpr const char* kNames[] = {"i", "j", "k", "n", "m"};
    return var(kNames[pick(5)]);
  }
  Expr integer(int depth) {
    if (depth == 0) return pick(4) == 0 ? Expr(between(-20, 40)) : variable();
    static constexpr int64_t kSizes[] = {2, 3, 4, 5, 6, 8, 12, 16};
    int64_t size = kSizes[pick(8)];
    switch (pick(12)) {
      case 0:
      case 1: return integer(depth - 1) + integer(depth - 1);
      case 2: return integer(depth - 1) - integer(depth - 1);
      case 3:
      case 4: return integer(depth - 1) * (pick(5) == 0 ? -size : size);
      case 5:
      case 6: return floor_div(integer(depth - 1), size);
      case 7:
      case 8: return floor_mod(integer(depth - 1), size);
      case 9: return min(integer(depth - 1), integer(depth - 1));
      case 10: return max(integer(depth - 1), integer(depth - 1));
      default:
        switch (pick(4)) {
          case 0: return select(condition(depth - 1), integer(depth - 1), integer(depth - 1));
          case 1: return variable() * variable();
          case 2: return floor_div(integer(depth - 1), var("n"));
          default: return floor_mod(integer(depth - 1), var("n"));
        }
    }
  }
  Expr condition(int depth) {
    static constexpr BinaryOp kCompare[] = {BinaryOp::lt, BinaryOp::le, BinaryOp::eq, BinaryOp::ne};
    if (depth > 0 && pick(4) == 0) {
      BinaryOp op = pick(2) ? BinaryOp::logical_and : BinaryOp::logical_or;
      Expr both = binary(op, condition(depth - 1), condition(depth - 1));
      return pick(3) ? both : unary(UnaryOp::logical_not, both);
    }
    return binary(kCompare[pick(4)], integer(depth), integer(depth));
  }
  std::map<std::string, int64_t, std::less<>> assignment() {
    std::map<std::string, int64_t, std::less<>> values;
    for (const char* name : {"i", "j", "k"})
      values[name] = between(*as_const(ranges_[name].min), *as_const(ranges_[name].max));
    values["n"] = pick(4) == 0 ? 1 : between(1, 50);
    values["m"] = between(0, values["n"] - 1);
    return values;
  }

 private:
  std::mt19937_64 rng_;
  Ranges ranges_;
};

inline int64_t evaluate(const Expr& e, const std::map<std::string, int64_t, std::less<>>& values) {
  return eval_int(e, [&](std::string_view name) { return values.find(name)->second; });
}

}  // namespace tw::testing
