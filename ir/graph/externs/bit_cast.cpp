// bit_cast: x -> the same bytes in another type of equal size. ints: the type (ONNX's number).
#include "ir/graph/externs/common.h"

namespace tw {

Expected<std::vector<TensorType>> infer_bit_cast(const op::Extern& attrs, const Types& in) {
  TW_TRY(check_inputs(in, 1, 1));
  TW_TRY(check_counts(attrs, 1, 0, 0));
  const auto to = dtype_from_onnx(static_cast<int>(attrs.ints[0]));
  if (!to || dtype_bytes(*to) != dtype_bytes(in[0]->dtype))
    return make_error(DiagCode::invalid_model, "{0} as type {1}, expected one of as many bytes",
                      dtype_name(in[0]->dtype), attrs.ints[0]);
  return std::vector<TensorType>{TensorType{*to, in[0]->shape, {}}};
}

}  // namespace tw
