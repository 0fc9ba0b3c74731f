#include "ir/graph/indices.h"

#include <algorithm>
#include <cstring>

#include "ir/graph/externs.h"
#include "ir/graph/ops/common.h"

namespace tw {

namespace {

// A new operator needs an overload here, otherwise this does not compile.
struct IndexInputs {
  const std::vector<const TensorType*>& inputs;

  using List = std::vector<IndexInput>;
  List operator()(const op::Gather& gather) const {
    if (gather.clamp) return {};
    return {{1, static_cast<size_t>(gather.axis)}};
  }
  List operator()(const op::Take& take) const {
    List list;
    for (size_t axis = 0, table = 1; axis < take.places.size(); ++axis)
      if (take.places[axis] < 0 && table < inputs.size()) {
        if (take.wrap) list.push_back({table, axis});
        ++table;
      }
    return list;
  }
  List operator()(const op::Extern& call) const {
    List list;
    if (call.function == ExternFunction::scatter_elements)
      list.push_back({1, static_cast<size_t>(call.ints[0])});
    if (call.function == ExternFunction::scatter_nd)
      for (int64_t d = 0; d < as_const(inputs[1]->shape.back()).value_or(0); ++d)
        list.push_back({1, static_cast<size_t>(d), d});
    return list;
  }
  template <class Op>
    requires OneOf<Op, op::Unary, op::Binary, op::Select, op::Cast, op::Quantize, op::Dequantize,
                   op::Lookup, op::Conv, op::ConvTranspose, op::MatMul, op::MatMulNBits, op::Pool,
                   op::Reduce, op::ArgReduce, op::Softmax, op::LayerNorm, op::BatchNorm,
                   op::Transpose, op::Reshape, op::Expand, op::Concat, op::Slice, op::Within,
                   op::Iota, op::Cumulate, op::Pad, op::Resize, op::Recurrent, op::ShapeOf,
                   op::DimVector, op::LayoutCast, op::If, op::Loop>
  List operator()(const Op&) const {
    return {};
  }
};

}  // namespace

std::vector<IndexInput> index_inputs(const OpAttrs& attrs,
                                     const std::vector<const TensorType*>& inputs) {
  return std::visit(IndexInputs{inputs}, attrs);
}

std::optional<Extremes> extremes(const TensorType& type, std::span<const std::byte> bytes,
                                 int64_t column) {
  const auto width = static_cast<size_t>(dtype_bytes(type.dtype));
  if ((width != 4 && width != 8) || (type.shape.empty() && column >= 0)) return std::nullopt;
  const size_t step = column < 0 ? 1 : static_cast<size_t>(as_const(type.shape.back()).value_or(1));
  std::optional<Extremes> found;
  for (size_t i = column < 0 ? 0 : static_cast<size_t>(column); (i + 1) * width <= bytes.size();
       i += step) {
    int64_t value = 0;
    if (width == 8) {
      std::memcpy(&value, bytes.data() + i * width, width);
    } else {
      int32_t narrow = 0;
      std::memcpy(&narrow, bytes.data() + i * width, width);
      value = narrow;
    }
    found = found ? Extremes{std::min(found->least, value), std::max(found->most, value)}
                  : Extremes{value, value};
  }
  return found;
}

Error check_indices(const IndexInput& at, const Extremes& found, const TensorType& data) {
  const std::optional<int64_t> extent = as_const(data.shape[at.axis]);
  if (!extent || (found.least >= -*extent && found.most < *extent)) return Error::success();
  return input_error(at.input, "indices", "index {0} along axis {1} of {2}, expected {3} to {4}",
                     found.most >= *extent ? found.most : found.least, at.axis, to_string(data),
                     -*extent, *extent - 1);
}

}  // namespace tw
