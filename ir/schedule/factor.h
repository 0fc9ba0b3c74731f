// Factors of the products that stages sum.
#pragma once
#include "ir/expr.h"
#include "ir/schedule/schedule.h"

namespace tw::sched {

// A factor of the product `value`, and the product with another one in its place. undefined: the
// value is no product.
Expr factor_of(const Expr& value, Factor side);
Expr with_factor(const Expr& value, Factor side, const Expr& with);

// A factor as `value - zero`
struct Counted {
  Expr value;
  int64_t zero = 0;
};
Counted counted(const Expr& factor);
Expr less(const Expr& value, int64_t zero);

// The number in a factor: without a constant that is subtracted, a rounding to tf32 and a cast that
// widens. with_number puts another one in its place.
Expr number_in(const Expr& factor);
Expr with_number(const Expr& factor, const Expr& number);

}  // namespace tw::sched
