// The table of importers: one row an ONNX operator, sorted by name. Rows start at the first version whose meaning the importer
// reads; models with older operators are converted upward before.
#include "frontend/onnx/import_table.h"

#include <algorithm>
#include <array>

#include "frontend/onnx/ops/importers.h"
#include "ir/expr.h"

namespace tw::onnx_import {
namespace {

constexpr int of(UnaryOp op) { return static_cast<int>(op); }
constexpr int of(BinaryOp op) { return static_cast<int>(op); }
constexpr int of(ReduceKind kind) { return static_cast<int>(kind); }
constexpr int of(RecurrentKind kind) { return static_cast<int>(kind); }
constexpr int of(Hyperbolic which) { return static_cast<int>(which); }
constexpr int of(ComposedReduce which) { return static_cast<int>(which); }

constexpr std::array kRows = {
    ImportRow{"Abs", 6, 13, import_unary, of(UnaryOp::abs)},
    ImportRow{"Acos", 7, 22, import_unary, of(UnaryOp::acos)},
    ImportRow{"Acosh", 9, 22, import_hyperbolic, of(Hyperbolic::acosh)},
    ImportRow{"Add", 7, 14, import_binary, of(BinaryOp::add)},
    ImportRow{"And", 7, 7, import_binary, of(BinaryOp::logical_and)},
    ImportRow{"ArgMax", 1, 13, import_arg_reduce, 0},
    ImportRow{"ArgMin", 1, 13, import_arg_reduce, 1},
    ImportRow{"Asin", 7, 22, import_unary, of(UnaryOp::asin)},
    ImportRow{"Asinh", 9, 22, import_hyperbolic, of(Hyperbolic::asinh)},
    ImportRow{"Atan", 7, 22, import_unary, of(UnaryOp::atan)},
    ImportRow{"Atanh", 9, 22, import_hyperbolic, of(Hyperbolic::atanh)},
    ImportRow{"AveragePool", 7, 22, import_average_pool},
    ImportRow{"BatchNormalization", 7, 15, import_batch_norm},
    ImportRow{"BitShift", 11, 28, import_bit_shift},
    ImportRow{"BitwiseAnd", 18, 18, import_binary, of(BinaryOp::bit_and)},
    ImportRow{"BitwiseNot", 18, 18, import_unary, of(UnaryOp::bit_not)},
    ImportRow{"BitwiseOr", 18, 18, import_binary, of(BinaryOp::bit_or)},
    ImportRow{"BitwiseXor", 18, 18, import_binary, of(BinaryOp::bit_xor)},
    ImportRow{"Cast", 6, 28, import_cast},
    ImportRow{"CastLike", 15, 25, import_cast_like},
    ImportRow{"Ceil", 6, 13, import_unary, of(UnaryOp::ceil)},
    ImportRow{"Celu", 12, 28, import_celu},
    ImportRow{"Clip", 6, 13, import_clip},
    ImportRow{"Concat", 4, 13, import_concat},
    ImportRow{"Constant", 1, 25, import_constant},
    ImportRow{"ConstantOfShape", 9, 25, import_constant_of_shape},
    ImportRow{"Conv", 1, 22, import_conv},
    ImportRow{"ConvInteger", 10, 10, import_conv_integer},
    ImportRow{"ConvTranspose", 1, 22, import_conv_transpose},
    ImportRow{"Cos", 7, 22, import_unary, of(UnaryOp::cos)},
    ImportRow{"Cosh", 9, 22, import_hyperbolic, of(Hyperbolic::cosh)},
    ImportRow{"DepthToSpace", 1, 28, import_depth_to_space},
    ImportRow{"DequantizeLinear", 10, 28, import_dequantize},
    ImportRow{"Div", 7, 14, import_binary, of(BinaryOp::div)},
    ImportRow{"Dropout", 7, 22, import_dropout},
    ImportRow{"Elu", 6, 22, import_elu},
    ImportRow{"Equal", 7, 19, import_binary, of(BinaryOp::eq)},
    ImportRow{"Erf", 9, 13, import_unary, of(UnaryOp::erf)},
    ImportRow{"Exp", 6, 13, import_unary, of(UnaryOp::exp)},
    ImportRow{"Expand", 8, 13, import_expand},
    ImportRow{"EyeLike", 9, 22, import_eye_like},
    ImportRow{"Flatten", 1, 25, import_flatten},
    ImportRow{"Floor", 6, 13, import_unary, of(UnaryOp::floor)},
    ImportRow{"GRU", 7, 22, import_recurrent, of(RecurrentKind::gru)},
    ImportRow{"Gather", 1, 13, import_gather},
    ImportRow{"Gelu", 20, 20, import_gelu},
    ImportRow{"Gemm", 7, 13, import_gemm},
    ImportRow{"GlobalAveragePool", 1, 22, import_global_pool, of(ReduceKind::mean)},
    ImportRow{"GlobalLpPool", 2, 22, import_global_lp_pool},
    ImportRow{"GlobalMaxPool", 1, 22, import_global_pool, of(ReduceKind::max)},
    ImportRow{"Greater", 7, 13, import_greater, 0},
    ImportRow{"GreaterOrEqual", 12, 16, import_greater, 1},
    ImportRow{"GroupNormalization", 18, 21, import_group_norm},
    ImportRow{"HardSigmoid", 6, 22, import_hard_sigmoid},
    ImportRow{"HardSwish", 14, 22, import_hard_swish},
    ImportRow{"Hardmax", 1, 13, import_hardmax},
    ImportRow{"Identity", 1, 25, import_identity},
    ImportRow{"InstanceNormalization", 6, 22, import_instance_norm},
    ImportRow{"IsInf", 10, 20, import_is_inf},
    ImportRow{"IsNaN", 9, 20, import_unary, of(UnaryOp::is_nan)},
    ImportRow{"LRN", 1, 13, import_lrn},
    ImportRow{"LSTM", 7, 22, import_recurrent, of(RecurrentKind::lstm)},
    ImportRow{"LayerNormalization", 17, 17, import_layer_norm},
    ImportRow{"LeakyRelu", 6, 16, import_leaky_relu},
    ImportRow{"Less", 7, 13, import_binary, of(BinaryOp::lt)},
    ImportRow{"LessOrEqual", 12, 16, import_binary, of(BinaryOp::le)},
    ImportRow{"Log", 6, 13, import_unary, of(UnaryOp::log)},
    ImportRow{"LogSoftmax", 1, 13, import_softmax, 1},
    ImportRow{"LpNormalization", 1, 22, import_lp_normalization},
    ImportRow{"LpPool", 2, 22, import_lp_pool},
    ImportRow{"MatMul", 1, 13, import_matmul},
    ImportRow{"MatMulInteger", 10, 10, import_matmul_integer},
    ImportRow{"Max", 6, 13, import_variadic, of(BinaryOp::max)},
    ImportRow{"MaxPool", 1, 22, import_max_pool},
    ImportRow{"Mean", 6, 13, import_mean},
    ImportRow{"Min", 6, 13, import_variadic, of(BinaryOp::min)},
    ImportRow{"Mish", 18, 22, import_mish},
    ImportRow{"Mod", 10, 28, import_mod},
    ImportRow{"Mul", 7, 14, import_binary, of(BinaryOp::mul)},
    ImportRow{"Neg", 6, 13, import_unary, of(UnaryOp::neg)},
    ImportRow{"Not", 1, 1, import_unary, of(UnaryOp::logical_not)},
    ImportRow{"OneHot", 9, 28, import_one_hot},
    ImportRow{"Or", 7, 7, import_binary, of(BinaryOp::logical_or)},
    ImportRow{"PRelu", 1, 16, import_prelu},
    ImportRow{"Pad", 2, 25, import_pad},
    ImportRow{"Pow", 7, 15, import_pow},
    ImportRow{"QLinearConv", 10, 10, import_qlinear_conv},
    ImportRow{"QLinearMatMul", 10, 21, import_qlinear_matmul},
    ImportRow{"QuantizeLinear", 10, 28, import_quantize},
    ImportRow{"RNN", 7, 22, import_recurrent, of(RecurrentKind::rnn)},
    ImportRow{"Range", 11, 27, import_range},
    ImportRow{"Reciprocal", 6, 13, import_reciprocal},
    ImportRow{"ReduceL1", 1, 18, import_reduce_composed, of(ComposedReduce::l1)},
    ImportRow{"ReduceL2", 1, 18, import_reduce_composed, of(ComposedReduce::l2)},
    ImportRow{"ReduceLogSum", 1, 28, import_reduce_composed, of(ComposedReduce::log_sum)},
    ImportRow{"ReduceLogSumExp", 1, 28, import_reduce_composed, of(ComposedReduce::log_sum_exp)},
    ImportRow{"ReduceMax", 1, 20, import_reduce, of(ReduceKind::max)},
    ImportRow{"ReduceMean", 1, 18, import_reduce, of(ReduceKind::mean)},
    ImportRow{"ReduceMin", 1, 20, import_reduce, of(ReduceKind::min)},
    ImportRow{"ReduceProd", 1, 18, import_reduce, of(ReduceKind::prod)},
    ImportRow{"ReduceSum", 1, 13, import_reduce, of(ReduceKind::sum)},
    ImportRow{"ReduceSumSquare", 1, 18, import_reduce_composed, of(ComposedReduce::sum_square)},
    ImportRow{"Relu", 6, 14, import_relu},
    ImportRow{"Reshape", 5, 25, import_reshape},
    ImportRow{"Resize", 10, 19, import_resize},
    ImportRow{"Round", 11, 22, import_unary, of(UnaryOp::round)},
    ImportRow{"Selu", 6, 22, import_selu},
    ImportRow{"Shape", 1, 25, import_shape},
    ImportRow{"Shrink", 9, 9, import_shrink},
    ImportRow{"Sigmoid", 6, 13, import_unary, of(UnaryOp::sigmoid)},
    ImportRow{"Sign", 9, 13, import_unary, of(UnaryOp::sign)},
    ImportRow{"Sin", 7, 22, import_unary, of(UnaryOp::sin)},
    ImportRow{"Sinh", 9, 22, import_hyperbolic, of(Hyperbolic::sinh)},
    ImportRow{"Size", 1, 25, import_size},
    ImportRow{"Slice", 1, 13, import_slice},
    ImportRow{"Softmax", 1, 13, import_softmax, 0},
    ImportRow{"Softplus", 1, 22, import_softplus},
    ImportRow{"Softsign", 1, 22, import_softsign},
    ImportRow{"SpaceToDepth", 1, 28, import_space_to_depth},
    ImportRow{"Split", 2, 18, import_split},
    ImportRow{"Sqrt", 6, 13, import_unary, of(UnaryOp::sqrt)},
    ImportRow{"Squeeze", 1, 25, import_squeeze},
    ImportRow{"Sub", 7, 14, import_binary, of(BinaryOp::sub)},
    ImportRow{"Sum", 6, 13, import_variadic, of(BinaryOp::add)},
    ImportRow{"Swish", 24, 24, import_swish},
    ImportRow{"Tan", 7, 22, import_unary, of(UnaryOp::tan)},
    ImportRow{"Tanh", 6, 13, import_unary, of(UnaryOp::tanh)},
    ImportRow{"ThresholdedRelu", 10, 22, import_thresholded_relu},
    ImportRow{"Tile", 6, 13, import_tile},
    ImportRow{"Transpose", 1, 25, import_transpose},
    ImportRow{"Trilu", 14, 14, import_trilu},
    ImportRow{"Unsqueeze", 1, 25, import_unsqueeze},
    ImportRow{"Upsample", 7, 9, import_upsample},
    ImportRow{"Where", 9, 16, import_where},
    ImportRow{"Xor", 7, 7, import_binary, of(BinaryOp::logical_xor)},
};

constexpr bool sorted() {
  for (size_t i = 1; i < kRows.size(); ++i)
    if (kRows[i - 1].op_type >= kRows[i].op_type) return false;
  return true;
}
static_assert(sorted(), "rows are looked up by bisection");

}  // namespace

const ImportRow* find_importer_any_version(std::string_view domain, std::string_view op_type) {
  if (!domain.empty()) return nullptr;
  const auto row = std::lower_bound(kRows.begin(), kRows.end(), op_type,
                                    [](const ImportRow& r, std::string_view name) { return r.op_type < name; });
  return row != kRows.end() && row->op_type == op_type ? row : nullptr;
}

const ImportRow* find_importer(std::string_view domain, std::string_view op_type, int since_version) {
  const ImportRow* row = find_importer_any_version(domain, op_type);
  return row && since_version >= row->first && since_version <= row->last ? row : nullptr;
}

}  // namespace tw::onnx_import
