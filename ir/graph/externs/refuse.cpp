// refuse: -> i64[1] that nobody reads, because the function ends the run. ints: the characters of
// the message.
#include "ir/graph/externs/common.h"

namespace tw {

Expected<std::vector<TensorType>> infer_refuse(const op::Extern& attrs, const Types& in) {
  TW_TRY(check_inputs(in, 0, 0));
  TW_TRY(check_counts(attrs, attrs.ints.size(), 0, 0));
  if (attrs.ints.empty()) return make_error(DiagCode::invalid_model, "no text that says why");
  for (const int64_t letter : attrs.ints)
    if (letter < 1 || letter > 127)
      return make_error(DiagCode::invalid_model,
                        "{0} is no character of the text, expected 1 to 127", letter);
  return std::vector<TensorType>{TensorType{DType::i64, {Expr(1)}, {}}};
}

}  // namespace tw
