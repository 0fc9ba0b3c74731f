// random_bits: -> u32[dims] of random bits, different in each run of a context. ints: the seed.
#include "ir/graph/externs/common.h"

namespace tw {

Expected<std::vector<TensorType>> infer_random_bits(const op::Extern& attrs, const Types& in) {
  TW_TRY(check_inputs(in, 0, 0));
  if (attrs.ints.size() != 1 || !attrs.reals.empty())
    return make_error(DiagCode::invalid_model, "{0} ints, expected a seed", attrs.ints.size());
  return std::vector<TensorType>{{DType::u32, attrs.dims, {}}};
}

}  // namespace tw
