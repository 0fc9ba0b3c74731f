// The core operators of the Graph IR: plain attribute structs in one variant, and the table with
// the functions of each one. ONNX's ~200 operators become these or compositions of them. To add
// one, see docs/internals/adding-an-op.md.
//
//   conv(%x, %w, %b) strides=[1,1] dilations=[1,1] pads=[1,1,1,1]    the text form of an op::Conv
//
// Every struct lists its fields once, in `fields`. Printing, parsing, comparing and hashing all use
// that list. Lists with one entry for each axis (strides, dilations, pads) are always given in
// full; an empty list never means "default".
#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "ir/expr.h"
#include "support/diag.h"

namespace tw {

using Shape = std::vector<Expr>;  // extents: constants, symbols or expressions of symbols
using Ints = std::vector<int64_t>;

enum class PoolKind : uint8_t { max, average, sum };
enum class ReduceKind : uint8_t { sum, mean, max, min, prod };
enum class PadMode : uint8_t { constant, reflect, edge, wrap };
enum class ResizeMode : uint8_t { nearest, linear, cubic };
enum class CoordinateMode : uint8_t {
  half_pixel,
  asymmetric,
  align_corners,
  pytorch_half_pixel,
  half_pixel_symmetric,
  tf_half_pixel_for_nn
};
enum class NearestMode : uint8_t { round_prefer_floor, round_prefer_ceil, floor, ceil };
enum class RecurrentKind : uint8_t { rnn, gru, lstm };
enum class ExternFunction : uint8_t;  // ir/graph/externs.h
enum class GateFunction : uint8_t {
  sigmoid,
  tanh,
  relu,
  affine,
  leaky_relu,
  thresholded_relu,
  scaled_tanh,
  hard_sigmoid,
  elu,
  softsign,
  softplus
};

class Graph;
// A graph that a node runs. It has its own inputs and outputs. Its symbols mean the same as in the
// graph around it.
struct Region {
  std::shared_ptr<const Graph> graph;
};

namespace op {

struct Unary {  // out = f(x)
  UnaryOp function{};
  template <class V>
  void fields(V& v) {
    v("function", function);
  }
};
struct Binary {  // out = f(a, b), numpy broadcasting; comparisons and logic give bool
  BinaryOp function{};
  template <class V>
  void fields(V& v) {
    v("function", function);
  }
};
struct Select {  // out = condition ? a : b, all three broadcast
  template <class V>
  void fields(V&) {}
};
struct Cast {  // float -> int truncates; saturate clamps to the type
  DType to{};
  bool saturate = false;
  template <class V>
  void fields(V& v) {
    v("to", to);
    v("saturate", saturate);
  }
};
// ONNX's QuantizeLinear: x (f32), scale, optional zero_point of type `to` ->
// saturate(round_half_even(x / scale) + zero_point). scale and zero_point are scalars, or [d] along
// `axis` of extent d.
struct Quantize {
  DType to{};
  int64_t axis = 0;
  template <class V>
  void fields(V& v) {
    v("to", to);
    v("axis", axis);
  }
};
// x (integers up to 32 bits), scale, optional zero_point of x's type -> (x - zero_point) * scale,
// in scale's type
struct Dequantize {
  int64_t axis = 0;
  template <class V>
  void fields(V& v) {
    v("axis", axis);
  }
};
// x (i8 or u8), table [256] -> table[x], in the table's type and x's shape. The entry of the least
// number comes first.
struct Lookup {
  template <class V>
  void fields(V&) {}
};
// x: [N, C, spatial...], w: [M, C/group, kernel...], optional bias [M] -> [N, M, spatial...], with
// any number of spatial axes. Integers narrower than 32 bits (x and w may differ) have i32 sums and
// bias.
struct Conv {
  Ints strides, dilations, pads;  // pads: all begins, then all ends
  int64_t group = 1;
  // Integers: the number that stands for 0 in x and fills the padding. The sums are of (x - x_zero)
  // * w.
  int64_t x_zero = 0;
  template <class V>
  void fields(V& v) {
    v("strides", strides);
    v("dilations", dilations);
    v("pads", pads);
    v("group", group);
    v("x_zero", x_zero);
  }
};
// x: [N, C, spatial...], w: [C, M/group, kernel...], optional bias [M] -> [N, M, spatial...].
// Integers work as in Conv.
struct ConvTranspose {
  Ints strides, dilations, pads, output_padding;
  int64_t group = 1;
  int64_t x_zero = 0;
  template <class V>
  void fields(V& v) {
    v("strides", strides);
    v("dilations", dilations);
    v("pads", pads);
    v("output_padding", output_padding);
    v("group", group);
    v("x_zero", x_zero);
  }
};
// a: [batch..., M, K] (or K x M when trans_a), b: [batch..., K, N] (or N x K when trans_b). Batches
// broadcast, both ranks are >= 2. Integers narrower than 32 bits (a and b may differ) have i32
// sums.
struct MatMul {
  bool trans_a = false, trans_b = false;
  int64_t a_zero = 0;  // integers: the number that stands for 0 in a; sums are of (a - a_zero) * b
  // The count of integer products that cannot wrap. A run with a larger K ends. 0: no limit.
  int64_t most_products = 0;
  template <class V>
  void fields(V& v) {
    v("trans_a", trans_a);
    v("trans_b", trans_b);
    v("a_zero", a_zero);
    v("most_products", most_products);
  }
};
// a: [batch..., M, K] times the transpose of a matrix w: [N, K] in numbers of 2, 4 or 8 bits ->
// [batch..., M, N]. The inputs are a, b, scales and zeros. Let c[n, k] be the `bits`-bit number for
// column n and step k of the depth, and let g run over blocks of the depth:
//   y[m, n] = sum over g of scales[n, g] * sum over k in g of a[m, k] * (c[n, k] - zeros[n, g])
// b: u8 [N, blocks, block * bits / 8], low bits first. scales: [N, blocks]. zeros: [N, blocks] or
// one number, []. scales and zeros have a's type. With byte_rows each block of a row of a is
// rounded to 8 bits: its largest magnitude becomes 127.
struct MatMulNBits {
  int64_t bits = 4, block = 32;
  bool byte_rows = false;
  template <class V>
  void fields(V& v) {
    v("bits", bits);
    v("block", block);
    v("byte_rows", byte_rows);
  }
};
// x: [N, C, spatial...]. Padding never wins a max. It counts in an average only with
// count_include_pad.
struct Pool {
  PoolKind kind{};
  Ints kernel, strides, dilations, pads;
  bool ceil_mode = false, count_include_pad = false;
  template <class V>
  void fields(V& v) {
    v("kind", kind);
    v("kernel", kernel);
    v("strides", strides);
    v("dilations", dilations);
    v("pads", pads);
    v("ceil_mode", ceil_mode);
    v("count_include_pad", count_include_pad);
  }
};
struct Reduce {  // axes are non-negative and sorted; keep: reduced axes stay with extent 1
  ReduceKind kind{};
  Ints axes;
  bool keep = true;
  template <class V>
  void fields(V& v) {
    v("kind", kind);
    v("axes", axes);
    v("keep", keep);
  }
};
struct ArgReduce {  // i64 index of the largest or smallest element along axis
  bool smallest = false;
  int64_t axis = 0;
  bool keep = true, last = false;  // last: the last of several equal elements
  template <class V>
  void fields(V& v) {
    v("smallest", smallest);
    v("axis", axis);
    v("keep", keep);
    v("last", last);
  }
};
// Softmax along one axis. log: log-softmax. masked: a row of nothing but -inf gives 0, not NaN
// (never with log).
struct Softmax {
  int64_t axis = -1;
  bool log = false, masked = false;
  template <class V>
  void fields(V& v) {
    v("axis", axis);
    v("log", log);
    v("masked", masked);
  }
};
// x, scale, optional bias. Normalizes over all axes from `axis` on, with the biased variance.
// centred false: the mean counts as 0.
struct LayerNorm {
  int64_t axis = -1;
  double epsilon = 1e-5;
  bool centred = true;
  template <class V>
  void fields(V& v) {
    v("axis", axis);
    v("epsilon", epsilon);
    v("centred", centred);
  }
};
struct BatchNorm {  // x: [N, C, ...], scale, bias, mean, variance: [C]
  double epsilon = 1e-5;
  template <class V>
  void fields(V& v) {
    v("epsilon", epsilon);
  }
};
struct Transpose {  // output axis i is input axis perm[i]
  Ints perm;
  template <class V>
  void fields(V& v) {
    v("perm", perm);
  }
};
struct Reshape {  // keeps the elements in row-major order
  Shape shape;
  template <class V>
  void fields(V& v) {
    v("shape", shape);
  }
};
// Broadcasts x to a shape of at least x's rank. exact: x must have that shape already; a run checks
// this where it depends on sizes.
struct Expand {
  Shape shape;
  bool exact = false;
  template <class V>
  void fields(V& v) {
    v("shape", shape);
    v("exact", exact);
  }
};
struct Concat {
  int64_t axis = 0;
  template <class V>
  void fields(V& v) {
    v("axis", axis);
  }
};
// out[i...] = x[starts + steps * i ...]. All three lists have one entry for each axis. Steps may be
// negative.
struct Slice {
  Shape starts;
  Ints steps;
  Shape sizes;
  template <class V>
  void fields(V& v) {
    v("starts", starts);
    v("steps", steps);
    v("sizes", sizes);
  }
};
// out[before..., indices..., after...] = x[before..., indices, after...]. Negative indices count
// from the end. Others outside are an error; with `clamp` they mean the nearest element inside.
struct Gather {
  int64_t axis = 0;
  bool clamp = false;
  template <class V>
  void fields(V& v) {
    v("axis", axis);
    v("clamp", clamp);
  }
};
// x, then an index tensor (i32 or i64) for every -1 in `places`, all broadcast to `shape` -> shape.
// The output element at point p is an element of x. Its index along axis i is p[places[i]]. Where
// places[i] is -1, the index is the element at p of the next index tensor. An index outside x means
// the nearest one inside. With `wrap`, negative indices count from the end and others outside are
// an error.
struct Take {
  Ints places;
  bool wrap = false;
  Shape shape;
  template <class V>
  void fields(V& v) {
    v("places", places);
    v("wrap", wrap);
    v("shape", shape);
  }
};
// Passes x through if all its elements lie in `range` (least and most; i32, i64), or are true
// (bool, without a range). Otherwise the run ends with the message `what`.
struct Within {
  Shape range;
  std::string what;
  template <class V>
  void fields(V& v) {
    v("range", range);
    v("what", what);
  }
};
struct Iota {  // no inputs -> i64 of `shape`; each element is its index along `axis`
  Shape shape;
  int64_t axis = 0;
  template <class V>
  void fields(V& v) {
    v("shape", shape);
    v("axis", axis);
  }
};
// Sums or products of all elements up to this one along axis. exclusive: without this one. reverse:
// starts at the end.
struct Cumulate {
  ReduceKind kind{};
  int64_t axis = 0;
  bool exclusive = false, reverse = false;
  template <class V>
  void fields(V& v) {
    v("kind", kind);
    v("axis", axis);
    v("exclusive", exclusive);
    v("reverse", reverse);
  }
};
struct Pad {  // x, optional scalar value; begins and ends are >= 0, one for each axis
  PadMode mode{};
  Shape begins, ends;
  template <class V>
  void fields(V& v) {
    v("mode", mode);
    v("begins", begins);
    v("ends", ends);
  }
};
struct Resize {  // resizes to `shape`; scales[i] is the coordinate factor along axis i
  ResizeMode mode{};
  CoordinateMode coordinates{};
  NearestMode nearest{};
  double cubic_a = -0.75;
  std::vector<double> scales;
  Shape shape;
  template <class V>
  void fields(V& v) {
    v("mode", mode);
    v("coordinates", coordinates);
    v("nearest", nearest);
    v("cubic_a", cubic_a);
    v("scales", scales);
    v("shape", shape);
  }
};
// One direction of a recurrent network. Inputs:
// * x: [T, B, D*G*H], the input half of all gates;
// * r: [D, G*H, H], of x's type; with x in f32 also f16 or bf16;
// * optional: bias [D, 2*G*H] (of the input half, then of the recurrent half), lengths [B], h0 and
//   c0 [D, B, H], peepholes [D, 3*H], r_scales [D, G*H].
//
// Output: the hidden states [T, B, H]; with `states`, rows T and T+1 are the last hidden state and
// the last cell.
//
// G gates are in ONNX's order: h; z r h; i o f c. Steps at or behind a sequence's length leave the
// state alone and give 0. `row` is the direction's index in D. f, g and h are ONNX's activations,
// each with its alpha and beta.
//
// r_scales belong to an LSTM whose r holds integers of 8 or 16 bits; the products with the hidden
// states are then in integers. The states of all sequences that take a step are rounded to u8 over
// their own range, extended to contain 0. The sum of products, in x's type, is multiplied by (scale
// of the states * r_scale).
struct Recurrent {
  RecurrentKind kind{};
  GateFunction f{}, g{}, h{};
  std::vector<double> alphas{0, 0, 0}, betas{0, 0, 0};
  double clip = 0;  // limit of the values that enter f and g; 0: none
  bool reverse = false, linear_before_reset = false, coupled = false, states = false;
  int64_t row = 0;
  int64_t gates() const {
    return kind == RecurrentKind::rnn ? 1 : kind == RecurrentKind::gru ? 3 : 4;
  }
  template <class V>
  void fields(V& v) {
    v("kind", kind);
    v("f", f);
    v("g", g);
    v("h", h);
    v("alphas", alphas);
    v("betas", betas);
    v("clip", clip);
    v("reverse", reverse);
    v("linear_before_reset", linear_before_reset);
    v("coupled", coupled);
    v("states", states);
    v("row", row);
  }
};
struct ShapeOf {  // the shape of x, as i64[rank]
  template <class V>
  void fields(V&) {}
};
struct DimVector {  // i64[n] whose elements are dim expressions; shape arithmetic folds to it
  Shape values;
  bool scalar = false;  // true: rank 0 instead of [1]
  template <class V>
  void fields(V& v) {
    v("values", values);
    v("scalar", scalar);
  }
};
// A runtime library function (runtime/ops), for work that loops express badly, such as sorting. The
// function defines the meaning of inputs, ints and reals, and its outputs (ir/graph/externs.h).
// `dims` are extents of outputs that may use symbols. It runs on the processor.
struct Extern {
  ExternFunction function{};
  Ints ints;
  std::vector<double> reals;
  Shape dims;
  template <class V>
  void fields(V& v) {
    v("function", function);
    v("ints", ints);
    v("reals", reals);
    v("dims", dims);
  }
};
// condition (one bool), then the inputs of then_branch, then those of else_branch -> the outputs.
// The outputs of both branches have equal types.
struct If {
  Region then_branch, else_branch;
  template <class V>
  void fields(V& v) {
    v("then_branch", then_branch);
    v("else_branch", else_branch);
  }
};
// Runs the body for iterations 0, 1, ... below the trip count (none: no limit) and, if it is
// conditional, while the condition is true.
// * Inputs: the first condition (conditional), `carried` values, `sliced` values of which an
//   iteration sees its row [iteration], and the rest as they are.
// * Outputs of the body: the next condition (conditional), the carried values, a row of each
//   stacked result.
// * Outputs of the node: the carried values, the stacked results [trip, ...], the number of
//   iterations (conditional). Rows of iterations that did not run hold anything.
//
// `iteration` is the body's symbol for the iteration, counted from 1. Extents of a carried value
// may grow with it: the body's input at iteration + 1 is then its output at iteration. The node's
// output has the extents after the last iteration below the trip count. After fewer iterations the
// value's elements come first.
struct Loop {
  Region body;
  Shape trip;  // one extent, or empty
  int64_t carried = 0, sliced = 0;
  bool conditional = false;
  std::string iteration;
  template <class V>
  void fields(V& v) {
    v("trip", trip);
    v("carried", carried);
    v("sliced", sliced);
    v("conditional", conditional);
    v("turn", iteration);
    v("body", body);
  }
};
// Stores x in another physical layout. The logical tensor stays the same. The output type carries
// the layout.
struct LayoutCast {
  int64_t axis = -1, block = 0;  // block 0: plain
  template <class V>
  void fields(V& v) {
    v("axis", axis);
    v("block", block);
  }
};

}  // namespace op

using OpAttrs =
    std::variant<op::Unary, op::Binary, op::Select, op::Cast, op::Quantize, op::Dequantize,
                 op::Lookup, op::Conv, op::ConvTranspose, op::MatMul, op::MatMulNBits, op::Pool,
                 op::Reduce, op::ArgReduce, op::Softmax, op::LayerNorm, op::BatchNorm,
                 op::Transpose, op::Reshape, op::Expand, op::Concat, op::Slice, op::Gather,
                 op::Take, op::Within, op::Iota, op::Cumulate, op::Pad, op::Resize, op::Recurrent,
                 op::ShapeOf, op::DimVector, op::LayoutCast, op::Extern, op::If, op::Loop>;
inline constexpr size_t kOpCount = std::variant_size_v<OpAttrs>;

// For visitors of OpAttrs that name every operator: adding one then breaks their compile.
template <class Op, class... Ops>
concept OneOf = (std::same_as<Op, Ops> || ...);

// The ways in which an operator may be fused (TVM, OSDI'18, section 3)
enum class FusionClass : uint8_t {
  // One output element depends on one element of each input: element-wise, broadcast, data
  // movement.
  injective,
  reduction,    // many to one; injective ops may be fused into its inputs
  complex_out,  // conv, matmul; element-wise ops may follow in the same kernel
  opaque,       // never fused
};

// The input types that infer_types refuses before it asks the operator
enum class ElementTypes : uint8_t {
  any,         // refuses none: the operator moves elements, or checks the types itself
  arithmetic,  // refuses storage types: the operator calculates with its elements
};

struct TensorType;
struct Tensor;

struct OpInfo {
  const char* name;  // word of the text form: "conv"
  FusionClass fusion;
  ElementTypes elements;
  // max -1: any number. Inputs beyond min may be absent (invalid ids).
  int min_inputs, max_inputs;
  // The output type, from the input types (absent inputs are null). Errors name the input and the
  // accepted types.
  Expected<TensorType> (*infer)(const OpAttrs&, const std::vector<const TensorType*>&);
  // The naive reference. It sums in double and rounds the result to the output type. Shapes are
  // static.
  Expected<Tensor> (*evaluate)(const OpAttrs&, const TensorType& out,
                               const std::vector<const Tensor*>&);
  // These replace `infer` and `evaluate`, which are null, for operators whose nodes may have
  // several outputs.
  Expected<std::vector<TensorType>> (*infer_all)(const OpAttrs&,
                                                 const std::vector<const TensorType*>&) = nullptr;
  Expected<std::vector<Tensor>> (*evaluate_all)(const OpAttrs&, const std::vector<TensorType>& outs,
                                                const std::vector<const Tensor*>&) = nullptr;
};
// Indexed by OpAttrs::index(). The table is in ir/graph/op_table.cpp, its functions in
// ir/graph/ops/.
const std::array<OpInfo, kOpCount>& op_table();
inline const OpInfo& op_info(const OpAttrs& attrs) { return op_table()[attrs.index()]; }
// True: the node is opaque. It is never fused, merged with an equal one, or rewritten.
inline bool has_several_outputs(const OpAttrs& attrs) {
  return op_info(attrs).infer_all != nullptr;
}
std::vector<const Graph*> regions_of(const OpAttrs& attrs);
void for_each_region(OpAttrs& attrs, const std::function<void(Region&)>& fn);
bool equal(const OpAttrs& a, const OpAttrs& b);
// " strides=[2,2] group=1"; omits fields at their default.
std::string print_attrs(const OpAttrs& attrs);

}  // namespace tw
