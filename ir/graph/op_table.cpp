// The table of operators, in the order of OpAttrs, and type inference with the checks that all
// operators share.
#include "ir/graph/ops/common.h"
#include "ir/storage_types.h"

namespace tw {
namespace {

struct Row {
  size_t index;
  OpInfo info;
};
template <class Op, size_t I = 0>
consteval size_t index_of() {
  if constexpr (std::is_same_v<Op, std::variant_alternative_t<I, OpAttrs>>) return I;
  else return index_of<Op, I + 1>();
}
template <class Op>
consteval Row row(const char* name, FusionClass fusion, ElementTypes elements, int min_inputs,
                  int max_inputs, InferFn* infer, EvaluateFn* evaluate) {
  return {index_of<Op>(), {name, fusion, elements, min_inputs, max_inputs, infer, evaluate}};
}

template <class Op>
consteval Row row_of_several(const char* name, InferAllFn* infer, EvaluateAllFn* evaluate) {
  return {index_of<Op>(),
          {name, FusionClass::opaque, ElementTypes::any, 0, -1, nullptr, nullptr, infer, evaluate}};
}

using enum FusionClass;
using enum ElementTypes;
constexpr Row kRows[] = {
    row<op::Unary>("unary", injective, any, 1, 1, infer_unary, evaluate_unary),
    row<op::Binary>("binary", injective, any, 2, 2, infer_binary, evaluate_binary),
    row<op::Select>("select", injective, any, 3, 3, infer_select, evaluate_select),
    row<op::Cast>("cast", injective, any, 1, 1, infer_cast, evaluate_cast),
    row<op::Quantize>("quantize", injective, any, 2, 3, infer_quantize, evaluate_quantize),
    row<op::Dequantize>("dequantize", injective, any, 2, 3, infer_dequantize, evaluate_dequantize),
    row<op::Lookup>("lookup", injective, any, 2, 2, infer_lookup, evaluate_lookup),
    row<op::Conv>("conv", complex_out, arithmetic, 2, 3, infer_conv, evaluate_conv),
    row<op::ConvTranspose>("conv_transpose", complex_out, arithmetic, 2, 3, infer_conv_transpose,
                           evaluate_conv_transpose),
    row<op::MatMul>("matmul", complex_out, arithmetic, 2, 2, infer_matmul, evaluate_matmul),
    row<op::MatMulNBits>("matmul_nbits", complex_out, arithmetic, 4, 4, infer_matmul_nbits,
                         evaluate_matmul_nbits),
    row<op::Pool>("pool", reduction, arithmetic, 1, 1, infer_pool, evaluate_pool),
    row<op::Reduce>("reduce", reduction, arithmetic, 1, 1, infer_reduce, evaluate_reduce),
    row<op::ArgReduce>("arg_reduce", reduction, arithmetic, 1, 1, infer_arg_reduce,
                       evaluate_arg_reduce),
    row<op::Softmax>("softmax", reduction, arithmetic, 1, 1, infer_softmax, evaluate_softmax),
    row<op::LayerNorm>("layer_norm", reduction, arithmetic, 2, 3, infer_layer_norm,
                       evaluate_layer_norm),
    row<op::BatchNorm>("batch_norm", injective, arithmetic, 5, 5, infer_batch_norm,
                       evaluate_batch_norm),
    row<op::Transpose>("transpose", injective, any, 1, 1, infer_transpose, evaluate_transpose),
    row<op::Reshape>("reshape", injective, any, 1, 1, infer_reshape, evaluate_reshape),
    row<op::Expand>("expand", injective, any, 1, 1, infer_expand, evaluate_expand),
    row<op::Concat>("concat", injective, any, 1, -1, infer_concat, evaluate_concat),
    row<op::Slice>("slice", injective, any, 1, 1, infer_slice, evaluate_slice),
    row<op::Gather>("gather", injective, any, 2, 2, infer_gather, evaluate_gather),
    row<op::Take>("take", injective, any, 1, -1, infer_take, evaluate_take),
    row<op::Within>("within", injective, any, 1, 1, infer_within, evaluate_within),
    row<op::Iota>("iota", injective, any, 0, 0, infer_iota, evaluate_iota),
    row<op::Cumulate>("cumulate", opaque, arithmetic, 1, 1, infer_cumulate, evaluate_cumulate),
    row<op::Pad>("pad", injective, any, 1, 2, infer_pad, evaluate_pad),
    row<op::Resize>("resize", injective, arithmetic, 1, 1, infer_resize, evaluate_resize),
    row<op::Recurrent>("recurrent", opaque, arithmetic, 2, 8, infer_recurrent, evaluate_recurrent),
    row<op::ShapeOf>("shape_of", opaque, any, 1, 1, infer_shape_of, evaluate_shape_of),
    row<op::DimVector>("dim_vector", opaque, any, 0, 0, infer_dim_vector, evaluate_dim_vector),
    row<op::LayoutCast>("layout_cast", injective, any, 1, 1, infer_layout_cast,
                        evaluate_layout_cast),
    row_of_several<op::Extern>("extern", infer_extern, evaluate_extern),
    row_of_several<op::If>("if", infer_if, evaluate_if),
    row_of_several<op::Loop>("loop", infer_loop, evaluate_loop),
};
static_assert(std::size(kRows) == kOpCount, "every alternative of OpAttrs has a row");

consteval std::array<OpInfo, kOpCount> make_table() {
  std::array<OpInfo, kOpCount> table{};
  for (size_t i = 0; i < kOpCount; ++i) {
    if (kRows[i].index != i) throw "rows are in the order of OpAttrs";
    table[i] = kRows[i].info;
  }
  return table;
}
constexpr std::array<OpInfo, kOpCount> kTable = make_table();

}  // namespace

const std::array<OpInfo, kOpCount>& op_table() { return kTable; }

Expected<TensorType> infer_type(const OpAttrs& attrs,
                                const std::vector<const TensorType*>& inputs) {
  TW_ASSIGN(std::vector<TensorType> types, infer_types(attrs, inputs));
  return std::move(types[0]);
}

Expected<std::vector<Tensor>> evaluate_node(const OpAttrs& attrs,
                                            const std::vector<TensorType>& outs,
                                            const std::vector<const Tensor*>& inputs) {
  const OpInfo& info = op_info(attrs);
  if (info.evaluate_all) return info.evaluate_all(attrs, outs, inputs);
  TW_ASSIGN(Tensor only, info.evaluate(attrs, outs[0], inputs));
  std::vector<Tensor> list;
  list.push_back(std::move(only));
  return list;
}

// String elements are pointers. Only operators made to move them may touch them.
static Error check_strings(const OpAttrs& attrs, const std::vector<const TensorType*>& inputs) {
  const bool moves = std::visit(
      []<class Op>(const Op&) {
        return OneOf<Op, op::Select, op::Transpose, op::Reshape, op::Expand, op::Concat, op::Slice,
                     op::Gather, op::Take, op::Pad, op::ShapeOf, op::LayoutCast, op::Extern, op::If,
                     op::Loop>;
      },
      attrs);
  for (size_t i = 0; i < inputs.size() && !moves; ++i)
    if (inputs[i] && inputs[i]->dtype == DType::string)
      return make_error(DiagCode::invalid_model, "input {0} is string, expected numbers", i);
  const auto* cast = std::get_if<op::Cast>(&attrs);
  if (cast && cast->to == DType::string)
    return make_error(DiagCode::unsupported, "numbers cannot be cast to string");
  return Error::success();
}

static double known_count(const Shape& shape, size_t from = 0) {
  double count = 1;
  for (size_t i = from; i < shape.size(); ++i)
    count *= static_cast<double>(as_const(shape[i]).value_or(1));
  return count;
}

// Time models multiply this count by bytes and operations, in 64 bits.
static Error check_products(const OpAttrs& attrs, const std::vector<const TensorType*>& in,
                            const TensorType& out) {
  constexpr double kMost = 0x1p52;
  double count = 0;
  if (std::holds_alternative<op::Conv>(attrs))
    count = known_count(out.shape) * known_count(in[1]->shape, 1);
  if (std::holds_alternative<op::ConvTranspose>(attrs))
    count = known_count(in[0]->shape) * known_count(in[1]->shape, 1);
  if (const auto* matmul = std::get_if<op::MatMul>(&attrs)) {
    const Expr& depth = in[0]->shape[in[0]->shape.size() - (matmul->trans_a ? 2 : 1)];
    count = known_count(out.shape) * known_count({depth});
  }
  if (std::holds_alternative<op::MatMulNBits>(attrs))
    count = known_count(out.shape) * known_count({in[0]->shape.back()});
  if (std::holds_alternative<op::Recurrent>(attrs))
    count = known_count(in[0]->shape) * known_count(in[1]->shape, 1);
  if (count <= kMost) return Error::success();
  return make_error(DiagCode::limit, "{0} of {1} and {2} takes more than 2^52 multiply-adds",
                    op_info(attrs).name, to_string(*in[0]), to_string(*in[1]));
}

Expected<std::vector<TensorType>> infer_types(const OpAttrs& attrs,
                                              const std::vector<const TensorType*>& inputs) {
  const OpInfo& info = op_info(attrs);
  int count = static_cast<int>(inputs.size());
  if (count < info.min_inputs || (info.max_inputs >= 0 && count > info.max_inputs)) {
    std::string wanted = std::to_string(info.min_inputs);
    if (info.max_inputs < 0) wanted += " or more";
    else if (info.max_inputs > info.min_inputs) wanted += " to " + std::to_string(info.max_inputs);
    return make_error(DiagCode::invalid_model, "{0} inputs, expected {1}", count, wanted);
  }
  for (int i = 0; i < info.min_inputs; ++i)
    if (!inputs[static_cast<size_t>(i)])
      return make_error(DiagCode::invalid_model, "input {0} is absent", i);
  std::vector<TensorType> logical(inputs.size());
  std::vector<const TensorType*> types(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    logical[i] = {inputs[i]->dtype, inputs[i]->shape, {}};
    types[i] = &logical[i];
  }
  for (size_t i = 0; i < inputs.size() && info.elements == ElementTypes::arithmetic; ++i)
    if (inputs[i] && is_storage_only(inputs[i]->dtype))
      return make_error(DiagCode::invalid_model,
                        "input {0}: {1} is a type for storage: cast it to one of arithmetic", i,
                        dtype_name(inputs[i]->dtype));
  TW_TRY(check_strings(attrs, inputs));
  std::vector<TensorType> outs;
  if (info.infer_all) {
    TW_ASSIGN(outs, info.infer_all(attrs, types));
  } else {
    TW_ASSIGN(TensorType out, info.infer(attrs, types));
    outs.push_back(std::move(out));
  }
  for (const TensorType& out : outs) TW_TRY(check_type(out));
  TW_TRY(check_products(attrs, types, outs.front()));
  return outs;
}

}  // namespace tw
