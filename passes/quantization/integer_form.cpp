#include "passes/quantization/integer_form.h"

#include "ir/storage_types.h"

namespace tw {

ValueId IntegerForm::with(BinaryOp function, ValueId x, double other, const char* suffix) {
  const ValueId c = number(other, rewriter_.type(x).dtype, (std::string(suffix) + "_by").c_str());
  const bool bound = function == BinaryOp::max || function == BinaryOp::min;
  return add(op::Binary{function}, bound ? std::vector<ValueId>{c, x} : std::vector<ValueId>{x, c},
             suffix);
}

void IntegerForm::finish(ValueId rounded, const Range& range) {
  ValueId x = rounded;
  const auto apply = [&](BinaryOp function, int64_t value, const char* suffix) {
    x = with(function, x, static_cast<double>(value), suffix);
  };
  if (range.zero != 0) apply(BinaryOp::add, range.zero, "zero");
  if (range.low > lowest_of(range.to)) apply(BinaryOp::max, range.low, "low");
  if (range.high < highest_of(range.to)) apply(BinaryOp::min, range.high, "high");
  rewriter_.update(at_, op::Cast{range.to, true}, {x});
}

}  // namespace tw
