// The importers of all operator families. Each reads one ONNX node and sets its outputs. Importers
// of several operators get the operator from their row in the table.
#pragma once
#include "ir/graph/ops.h"

namespace tw::onnx_import {

class NodeImport;
using Val = Id<struct ImportValueTag>;

enum class Hyperbolic { sinh, cosh, asinh, acosh, atanh };
enum class Random { normal, normal_like, uniform, uniform_like };
enum class CosineWindow { hann, hamming, blackman };
enum class ComposedReduce { l1, l2, log_sum, log_sum_exp, sum_square };

// Attributes of windows, for convolutions and pools: one entry for each spatial axis; pads are all
// begins, then all ends.
struct Window {
  Ints strides, dilations, pads;
};
inline constexpr int64_t kMaxWindow = int64_t{1} << 31;  // limit of entries and kernel extents
Window read_window(NodeImport& n, Val x, const Ints& kernel);
// The extents of a convolution's kernel, from the weights. The attribute kernel_shape may only
// repeat them.
Ints kernel_of(NodeImport& n, Val x, Val w);
Val average_pool(NodeImport& n, Val x);  // with the node's attributes
// numpy.matmul: a vector on the left is a row, one on the right a column, and its axis is removed
// again. `a_zero` is the zero point of a quantized a.
Val matrix_product(NodeImport& n, Val a, Val b, int64_t a_zero = 0);
Val general_product(NodeImport& n);  // the product of Gemm
Val gelu(NodeImport& n, Val x, bool approximate);
// Sets output 0 to the norm of x over the axes from `axis` on. Outputs 1 and 2, if wanted, are the
// mean and 1 / sqrt(variance + epsilon). Without `centred`, both are the latter.
void layer_norm(NodeImport& n, Val x, Val scale, Val bias, int64_t axis, double epsilon,
                bool centred);

// elementwise.cpp
void import_unary(NodeImport& n, UnaryOp function);
void import_binary(NodeImport& n, BinaryOp function);
void import_greater(NodeImport& n, bool or_equal);
void import_pow(NodeImport& n);
void import_mod(NodeImport& n);
void import_bit_shift(NodeImport& n);
void import_variadic(NodeImport& n, BinaryOp function);
void import_mean(NodeImport& n);
void import_where(NodeImport& n);
void import_cast(NodeImport& n);
void import_bit_cast(NodeImport& n);
void import_cast_like(NodeImport& n);
void import_identity(NodeImport& n);
void import_clip(NodeImport& n);
void import_is_inf(NodeImport& n);
void import_reciprocal(NodeImport& n);
void import_hyperbolic(NodeImport& n, Hyperbolic which);
// activation.cpp
void import_relu(NodeImport& n);
void import_leaky_relu(NodeImport& n);
void import_prelu(NodeImport& n);
void import_elu(NodeImport& n);
void import_selu(NodeImport& n);
void import_celu(NodeImport& n);
void import_hard_sigmoid(NodeImport& n);
void import_hard_swish(NodeImport& n);
void import_swish(NodeImport& n);
void import_swiglu(NodeImport& n);
void import_mish(NodeImport& n);
void import_softplus(NodeImport& n);
void import_softsign(NodeImport& n);
void import_thresholded_relu(NodeImport& n);
void import_shrink(NodeImport& n);
void import_gelu(NodeImport& n);
void import_softmax(NodeImport& n, bool log);
void import_hardmax(NodeImport& n);
// conv.cpp
void import_conv(NodeImport& n);
void import_conv_transpose(NodeImport& n);
// gather.cpp
void import_gather_elements(NodeImport& n);
void import_gather_nd(NodeImport& n);
void import_reverse_sequence(NodeImport& n);
void import_cumulate(NodeImport& n, ReduceKind kind);
// einsum.cpp
void import_einsum(NodeImport& n);
// sample.cpp
void import_grid_sample(NodeImport& n);
void import_affine_grid(NodeImport& n);
void import_deform_conv(NodeImport& n);
// roi.cpp
void import_roi_align(NodeImport& n);
void import_max_roi_pool(NodeImport& n);
// signal.cpp, dft.cpp
void import_window(NodeImport& n, CosineWindow which);
void import_mel_weights(NodeImport& n);
void import_stft(NodeImport& n);
void import_dft(NodeImport& n);
// pool.cpp
void import_col2im(NodeImport& n);
void import_max_pool(NodeImport& n);
void import_average_pool(NodeImport& n);
void import_global_pool(NodeImport& n, ReduceKind kind);
void import_lp_pool(NodeImport& n);
void import_global_lp_pool(NodeImport& n);
// matmul.cpp
void import_matmul(NodeImport& n);
void import_gemm(NodeImport& n);
// norm.cpp
void import_batch_norm(NodeImport& n);
void import_layer_norm(NodeImport& n);
void import_instance_norm(NodeImport& n);
void import_group_norm(NodeImport& n);
void import_mean_variance_norm(NodeImport& n);
void import_lrn(NodeImport& n);
void import_lp_normalization(NodeImport& n);
void import_rms_norm(NodeImport& n);
void import_mean_variance_norm(NodeImport& n);
// attention.cpp
void import_attention(NodeImport& n);
void import_rotary_embedding(NodeImport& n);
// contrib.cpp
void import_fused_matmul(NodeImport& n);
void import_fused_gemm(NodeImport& n);
void import_fused_conv(NodeImport& n);
void import_bias_gelu(NodeImport& n, bool approximate);
void import_quick_gelu(NodeImport& n);
void import_bias_split_gelu(NodeImport& n);
void import_bias_add(NodeImport& n);
void import_bias_softmax(NodeImport& n);
void import_skip_layer_norm(NodeImport& n, bool centred);
void import_embed_layer_norm(NodeImport& n);
// contrib_attention.cpp
void import_ms_attention(NodeImport& n);
void import_qattention(NodeImport& n);
void import_multi_head_attention(NodeImport& n);
void import_ms_rotary_embedding(NodeImport& n);
// group_query.cpp
void import_group_query_attention(NodeImport& n);
// loss.cpp
void import_nll_loss(NodeImport& n);
void import_cross_entropy(NodeImport& n);
// nbits.cpp
void import_matmul_nbits(NodeImport& n);
void import_gather_block_quantized(NodeImport& n);
// state.cpp
void import_causal_conv(NodeImport& n);
// quantize.cpp
void import_quantize(NodeImport& n);
void import_dequantize(NodeImport& n);
// qlinear.cpp
void import_qlinear_conv(NodeImport& n);
void import_qlinear_matmul(NodeImport& n);
void import_qlinear_binary(NodeImport& n, BinaryOp function);
void import_qlinear_sigmoid(NodeImport& n);
void import_qlinear_leaky_relu(NodeImport& n);
void import_qlinear_softmax(NodeImport& n);
void import_qlinear_average_pool(NodeImport& n);
void import_qlinear_global_average_pool(NodeImport& n);
void import_qlinear_concat(NodeImport& n);
void import_qgemm(NodeImport& n);
void import_matmul_integer(NodeImport& n);
void import_conv_integer(NodeImport& n);
void import_matmul_integer_to_float(NodeImport& n);
void import_dynamic_quantize_lstm(NodeImport& n);
void import_dynamic_quantize_matmul(NodeImport& n);
// reduce.cpp
void import_reduce(NodeImport& n, ReduceKind kind);
void import_reduce_composed(NodeImport& n, ComposedReduce which);
void import_arg_reduce(NodeImport& n, bool smallest);
// shape.cpp
void import_reshape(NodeImport& n);
void import_flatten(NodeImport& n);
void import_squeeze(NodeImport& n);
void import_unsqueeze(NodeImport& n);
void import_expand(NodeImport& n);
void import_tile(NodeImport& n);
void import_shape(NodeImport& n);
void import_size(NodeImport& n);
// move.cpp
void import_transpose(NodeImport& n);
void import_concat(NodeImport& n);
void import_split(NodeImport& n);
void import_slice(NodeImport& n);
void import_gather(NodeImport& n);
void import_pad(NodeImport& n);
void import_center_crop_pad(NodeImport& n);
void import_depth_to_space(NodeImport& n);
void import_space_to_depth(NodeImport& n);
// recurrent.cpp
void import_recurrent(NodeImport& n, RecurrentKind kind);
// sort.cpp
void import_topk(NodeImport& n);
void import_unique(NodeImport& n);
void import_nonzero(NodeImport& n);
void import_compress(NodeImport& n);
void import_non_max_suppression(NodeImport& n);
// scatter.cpp
void import_scatter_elements(NodeImport& n);
void import_scatter_nd(NodeImport& n);
void import_tensor_scatter(NodeImport& n);
void import_max_unpool(NodeImport& n);
void import_det(NodeImport& n);
// random.cpp
void import_random(NodeImport& n, Random kind);
void import_bernoulli(NodeImport& n);
void import_dropout(NodeImport& n);
void import_multinomial(NodeImport& n);
// resize.cpp
void import_resize(NodeImport& n);
void import_upsample(NodeImport& n);
// create.cpp
void import_constant(NodeImport& n);
void import_constant_of_shape(NodeImport& n);
void import_range(NodeImport& n);
void import_one_hot(NodeImport& n);
void import_trilu(NodeImport& n);
void import_eye_like(NodeImport& n);
// sequence.cpp
void import_sequence_empty(NodeImport& n);
void import_sequence_construct(NodeImport& n);
void import_sequence_at(NodeImport& n);
void import_sequence_insert(NodeImport& n);
void import_sequence_erase(NodeImport& n);
void import_sequence_length(NodeImport& n);
void import_split_to_sequence(NodeImport& n);
void import_concat_from_sequence(NodeImport& n);
void import_optional(NodeImport& n);
void import_optional_has_element(NodeImport& n);
void import_optional_get_element(NodeImport& n);
// control.cpp
void import_if(NodeImport& n);
void import_loop(NodeImport& n);
void import_scan(NodeImport& n);
void import_sequence_map(NodeImport& n);
// ml_features.cpp
void import_ml_array_feature_extractor(NodeImport& n);
void import_ml_binarizer(NodeImport& n);
void import_ml_feature_vectorizer(NodeImport& n);
void import_ml_imputer(NodeImport& n);
void import_ml_normalizer(NodeImport& n);
void import_ml_one_hot_encoder(NodeImport& n);
void import_ml_scaler(NodeImport& n);
// ml_linear.cpp
void import_ml_linear_classifier(NodeImport& n);
void import_ml_linear_regressor(NodeImport& n);
void import_ml_svm_classifier(NodeImport& n);
void import_ml_svm_regressor(NodeImport& n);
// ml_trees.cpp
void import_ml_tree_ensemble(NodeImport& n);
void import_ml_tree_ensemble_classifier(NodeImport& n);
void import_ml_tree_ensemble_regressor(NodeImport& n);
// ml_labels.cpp
void import_ml_label_encoder(NodeImport& n);
void import_ml_category_mapper(NodeImport& n);
void import_ml_zip_map(NodeImport& n);
// strings
void import_regex_full_match(NodeImport& n);
void import_string_concat(NodeImport& n);
void import_string_equal(NodeImport& n);
void import_string_normalizer(NodeImport& n);
void import_string_split(NodeImport& n);
void import_tf_idf_vectorizer(NodeImport& n);
void import_tokenizer(NodeImport& n);

}  // namespace tw::onnx_import
