// The importers of all operator families. Each reads one ONNX node and sets its outputs; `param` is
// that of the table's row.
#pragma once
#include "ir/graph/ops.h"

namespace tw::onnx_import {

class NodeImport;
using Val = Id<struct ImportValueTag>;

enum class Hyperbolic { sinh, cosh, asinh, acosh, atanh };
enum class Random { normal, normal_like, uniform, uniform_like };
enum class ComposedReduce { l1, l2, log_sum, log_sum_exp, sum_square };

// Attributes that convolutions and pooling share; one entry a spatial axis, pads: all begins, then
// all ends.
struct Window {
  Ints strides, dilations, pads;
};
Window read_window(NodeImport& n, Val x, const Ints& kernel);
// A convolution's kernel: the extents of the weights, which the attribute kernel_shape may only
// repeat.
Ints kernel_of(NodeImport& n, Val x, Val w);
// numpy.matmul: a vector on the left is a row, on the right a column, and its axis goes away again.
// a_zero: of a quantized a.
Val average_pool(NodeImport& n, Val x);  // with the node's attributes
Val matrix_product(NodeImport& n, Val a, Val b, int64_t a_zero = 0);
Val general_product(NodeImport& n);  // Gemm's
Val gelu(NodeImport& n, Val x, bool approximate);
// Sets output 0 to the norm of x over the axes from `axis` on, outputs 1 and 2, where wanted, to
// the mean (only of a centred one, else to the same as 2) and 1 / sqrt(variance + epsilon).
void layer_norm(NodeImport& n, Val x, Val scale, Val bias, int64_t axis, double epsilon,
                bool centred);

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
void import_bit_cast(NodeImport& n, int param);
void import_cast_like(NodeImport& n, int param);
void import_identity(NodeImport& n, int param);
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
void import_swiglu(NodeImport& n, int param);
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
// gather.cpp
void import_gather_elements(NodeImport& n, int param);
void import_gather_nd(NodeImport& n, int param);
void import_reverse_sequence(NodeImport& n, int param);
void import_cumulate(NodeImport& n, int param);
// einsum.cpp
void import_einsum(NodeImport& n, int param);
// sample.cpp
void import_grid_sample(NodeImport& n, int param);
void import_affine_grid(NodeImport& n, int param);
void import_deform_conv(NodeImport& n, int param);
// roi.cpp
void import_roi_align(NodeImport& n, int param);
void import_max_roi_pool(NodeImport& n, int param);
// signal.cpp, dft.cpp
void import_window(NodeImport& n, int param);
void import_mel_weights(NodeImport& n, int param);
void import_stft(NodeImport& n, int param);
void import_dft(NodeImport& n, int param);
// pool.cpp
void import_col2im(NodeImport& n, int param);
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
void import_mean_variance_norm(NodeImport& n, int param);
void import_lrn(NodeImport& n, int param);
void import_lp_normalization(NodeImport& n, int param);
void import_rms_norm(NodeImport& n, int param);
void import_mean_variance_norm(NodeImport& n, int param);
// attention.cpp
void import_attention(NodeImport& n, int param);
void import_rotary_embedding(NodeImport& n, int param);
// contrib.cpp
void import_fused_matmul(NodeImport& n, int param);
void import_fused_gemm(NodeImport& n, int param);
void import_fused_conv(NodeImport& n, int param);
void import_bias_gelu(NodeImport& n, int param);
void import_quick_gelu(NodeImport& n, int param);
void import_bias_split_gelu(NodeImport& n, int param);
void import_bias_add(NodeImport& n, int param);
void import_bias_softmax(NodeImport& n, int param);
void import_skip_layer_norm(NodeImport& n, int param);
void import_embed_layer_norm(NodeImport& n, int param);
// contrib_attention.cpp
void import_ms_attention(NodeImport& n, int param);
void import_qattention(NodeImport& n, int param);
void import_multi_head_attention(NodeImport& n, int param);
void import_ms_rotary_embedding(NodeImport& n, int param);
// group_query.cpp
void import_group_query_attention(NodeImport& n, int param);
// loss.cpp
void import_nll_loss(NodeImport& n, int param);
void import_cross_entropy(NodeImport& n, int param);
// nbits.cpp
void import_matmul_nbits(NodeImport& n, int param);
void import_gather_block_quantized(NodeImport& n, int param);
// state.cpp
void import_causal_conv(NodeImport& n, int param);
// quantize.cpp
void import_quantize(NodeImport& n, int param);
void import_dequantize(NodeImport& n, int param);
// qlinear.cpp
void import_qlinear_conv(NodeImport& n, int param);
void import_qlinear_matmul(NodeImport& n, int param);
void import_qlinear_binary(NodeImport& n, int function);
void import_qlinear_sigmoid(NodeImport& n, int param);
void import_qlinear_leaky_relu(NodeImport& n, int param);
void import_qlinear_softmax(NodeImport& n, int param);
void import_qlinear_average_pool(NodeImport& n, int param);
void import_qlinear_global_average_pool(NodeImport& n, int param);
void import_qlinear_concat(NodeImport& n, int param);
void import_qgemm(NodeImport& n, int param);
void import_matmul_integer(NodeImport& n, int param);
void import_conv_integer(NodeImport& n, int param);
void import_matmul_integer_to_float(NodeImport& n, int param);
void import_dynamic_quantize_matmul(NodeImport& n, int param);
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
void import_center_crop_pad(NodeImport& n, int param);
void import_depth_to_space(NodeImport& n, int param);
void import_space_to_depth(NodeImport& n, int param);
// recurrent.cpp
void import_recurrent(NodeImport& n, int param);
// sort.cpp
void import_topk(NodeImport& n, int param);
void import_unique(NodeImport& n, int param);
void import_nonzero(NodeImport& n, int param);
void import_compress(NodeImport& n, int param);
void import_non_max_suppression(NodeImport& n, int param);
// scatter.cpp
void import_scatter_elements(NodeImport& n, int param);
void import_scatter_nd(NodeImport& n, int param);
void import_tensor_scatter(NodeImport& n, int param);
void import_max_unpool(NodeImport& n, int param);
void import_det(NodeImport& n, int param);
// random.cpp
void import_random(NodeImport& n, int param);
void import_bernoulli(NodeImport& n, int param);
void import_dropout(NodeImport& n, int param);
void import_multinomial(NodeImport& n, int param);
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
// sequence.cpp
void import_sequence_empty(NodeImport& n, int param);
void import_sequence_construct(NodeImport& n, int param);
void import_sequence_at(NodeImport& n, int param);
void import_sequence_insert(NodeImport& n, int param);
void import_sequence_erase(NodeImport& n, int param);
void import_sequence_length(NodeImport& n, int param);
void import_split_to_sequence(NodeImport& n, int param);
void import_concat_from_sequence(NodeImport& n, int param);
void import_optional(NodeImport& n, int param);
void import_optional_has_element(NodeImport& n, int param);
void import_optional_get_element(NodeImport& n, int param);
// control.cpp
void import_if(NodeImport& n, int param);
void import_loop(NodeImport& n, int param);
void import_scan(NodeImport& n, int param);
void import_sequence_map(NodeImport& n, int param);
// ml_features.cpp
void import_ml_array_feature_extractor(NodeImport& n, int param);
void import_ml_binarizer(NodeImport& n, int param);
void import_ml_feature_vectorizer(NodeImport& n, int param);
void import_ml_imputer(NodeImport& n, int param);
void import_ml_label_encoder(NodeImport& n, int param);
void import_ml_normalizer(NodeImport& n, int param);
void import_ml_one_hot_encoder(NodeImport& n, int param);
void import_ml_scaler(NodeImport& n, int param);
// ml_linear.cpp
void import_ml_linear_classifier(NodeImport& n, int param);
void import_ml_linear_regressor(NodeImport& n, int param);
void import_ml_svm_classifier(NodeImport& n, int param);
void import_ml_svm_regressor(NodeImport& n, int param);
// ml_trees.cpp
void import_ml_tree_ensemble(NodeImport& n, int param);
void import_ml_tree_ensemble_classifier(NodeImport& n, int param);
void import_ml_tree_ensemble_regressor(NodeImport& n, int param);

}  // namespace tw::onnx_import
