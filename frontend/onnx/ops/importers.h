// The importers of all operator families. Each reads one ONNX node and sets its outputs; `param` is that of the table's row.
#pragma once
#include "ir/graph/ops.h"

namespace tw::onnx_import {

class NodeImport;
using Val = Id<struct ImportValueTag>;

enum class Hyperbolic { sinh, cosh, asinh, acosh, atanh };
enum class ComposedReduce { l1, l2, log_sum, log_sum_exp, sum_square };

// Attributes that convolutions and pooling share; one entry a spatial axis, pads: all begins, then all ends.
struct Window {
  Ints strides, dilations, pads;
};
Window read_window(NodeImport& n, Val x, const Ints& kernel);
// A convolution's kernel: the extents of the weights, which the attribute kernel_shape may only repeat.
Ints kernel_of(NodeImport& n, Val x, Val w);
// numpy.matmul: a vector on the left is a row, on the right a column, and its axis goes away again. a_zero: of a quantized a.
Val matrix_product(NodeImport& n, Val a, Val b, int64_t a_zero = 0);

// elementwise.cpp
void import_unary(NodeImport& n, int param);
void import_binary(NodeImport& n, int param);
void import_greater(NodeImport& n, int param);
void import_pow(NodeImport& n, int param);
void import_mod(NodeImport& n, int param);
void import_bit_shift(NodeImport& n, int param);
void import_variadic(NodeImport& n, int param);
void import_mean(NodeImport& n, int param);
void import_where(NodeImport& n, int param);
void import_cast(NodeImport& n, int param);
void import_cast_like(NodeImport& n, int param);
void import_identity(NodeImport& n, int param);
void import_dropout(NodeImport& n, int param);
void import_clip(NodeImport& n, int param);
void import_is_inf(NodeImport& n, int param);
void import_reciprocal(NodeImport& n, int param);
void import_hyperbolic(NodeImport& n, int param);
// activation.cpp
void import_relu(NodeImport& n, int param);
void import_leaky_relu(NodeImport& n, int param);
void import_prelu(NodeImport& n, int param);
void import_elu(NodeImport& n, int param);
void import_selu(NodeImport& n, int param);
void import_celu(NodeImport& n, int param);
void import_hard_sigmoid(NodeImport& n, int param);
void import_hard_swish(NodeImport& n, int param);
void import_swish(NodeImport& n, int param);
void import_mish(NodeImport& n, int param);
void import_softplus(NodeImport& n, int param);
void import_softsign(NodeImport& n, int param);
void import_thresholded_relu(NodeImport& n, int param);
void import_shrink(NodeImport& n, int param);
void import_gelu(NodeImport& n, int param);
void import_softmax(NodeImport& n, int param);
void import_hardmax(NodeImport& n, int param);
// conv.cpp
void import_conv(NodeImport& n, int param);
void import_conv_transpose(NodeImport& n, int param);
// pool.cpp
void import_max_pool(NodeImport& n, int param);
void import_average_pool(NodeImport& n, int param);
void import_global_pool(NodeImport& n, int param);
void import_lp_pool(NodeImport& n, int param);
void import_global_lp_pool(NodeImport& n, int param);
// matmul.cpp
void import_matmul(NodeImport& n, int param);
void import_gemm(NodeImport& n, int param);
// norm.cpp
void import_batch_norm(NodeImport& n, int param);
void import_layer_norm(NodeImport& n, int param);
void import_instance_norm(NodeImport& n, int param);
void import_group_norm(NodeImport& n, int param);
void import_lrn(NodeImport& n, int param);
void import_lp_normalization(NodeImport& n, int param);
// quantize.cpp
void import_quantize(NodeImport& n, int param);
void import_dequantize(NodeImport& n, int param);
void import_qlinear_conv(NodeImport& n, int param);
void import_qlinear_matmul(NodeImport& n, int param);
void import_matmul_integer(NodeImport& n, int param);
void import_conv_integer(NodeImport& n, int param);
// reduce.cpp
void import_reduce(NodeImport& n, int param);
void import_reduce_composed(NodeImport& n, int param);
void import_arg_reduce(NodeImport& n, int param);
// shape.cpp
void import_reshape(NodeImport& n, int param);
void import_flatten(NodeImport& n, int param);
void import_squeeze(NodeImport& n, int param);
void import_unsqueeze(NodeImport& n, int param);
void import_expand(NodeImport& n, int param);
void import_tile(NodeImport& n, int param);
void import_shape(NodeImport& n, int param);
void import_size(NodeImport& n, int param);
// move.cpp
void import_transpose(NodeImport& n, int param);
void import_concat(NodeImport& n, int param);
void import_split(NodeImport& n, int param);
void import_slice(NodeImport& n, int param);
void import_gather(NodeImport& n, int param);
void import_pad(NodeImport& n, int param);
void import_depth_to_space(NodeImport& n, int param);
void import_space_to_depth(NodeImport& n, int param);
// recurrent.cpp
void import_recurrent(NodeImport& n, int param);
// resize.cpp
void import_resize(NodeImport& n, int param);
void import_upsample(NodeImport& n, int param);
// create.cpp
void import_constant(NodeImport& n, int param);
void import_constant_of_shape(NodeImport& n, int param);
void import_range(NodeImport& n, int param);
void import_one_hot(NodeImport& n, int param);
void import_trilu(NodeImport& n, int param);
void import_eye_like(NodeImport& n, int param);

}  // namespace tw::onnx_import
