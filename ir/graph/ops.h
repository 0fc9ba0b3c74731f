// The core operators of the Graph IR: plain attribute structs in one variant, and the table that
// says what each one does. ONNX's ~200 operators arrive as these or as compositions of them. Adding
// one: docs/internals/adding-an-op.md.
//
// Every struct lists its fields once, in `fields`; printing, parsing, comparing and hashing go
// through it. Lists with an entry an axis are always given in full (strides, dilations, pads: never
// empty for "default").
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
// A graph that a node runs: inputs and outputs of its own, and symbols that mean what they mean
// around it.
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
struct Cast {  // float -> int truncates; saturate clamps
  DType to{};
  bool saturate = false;
  template <class V>
  void fields(V& v) {
    v("to", to);
    v("saturate", saturate);
  }
};
// x (f32), scale, optional zero_point of type `to` -> saturate(round_half_even(x / scale) +
// zero_point), ONNX's QuantizeLinear. scale and zero_point are scalars, or [d] along `axis` of
// extent d.
struct Quantize {
  DType to{};
  int64_t axis = 0;
  template <class V>
  void fields(V& v) {
    v("to", to);
    v("axis", axis);
  }
};
// x (integers up to 32 bits), scale, optional zero_point of x's type -> (x - zero_point) * scale in
// scale's type.
struct Dequantize {
  int64_t axis = 0;
  template <class V>
  void fields(V& v) {
    v("axis", axis);
  }
};
// x (i8 or u8), table [256] -> table[x], the least number's entry first; of the table's type and
// x's shape.
struct Lookup {
  template <class V>
  void fields(V&) {}
};
// x: [N, C, spatial...], w: [M, C/group, kernel...], optional bias [M] -> [N, M, spatial...]; any
// number of spatial axes. Of integers narrower than 32 bits (x and w may differ) the sums and the
// bias are i32.
struct Conv {
  Ints strides, dilations, pads;  // pads: all begins, then all ends
  int64_t group = 1;
  // integers: what stands for 0 in x, and what the padding holds; sums are of (x - x_zero) * w
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
// Integers as of a convolution.
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
// a: [batch..., M, K] (or K x M when trans_a), b: [batch..., K, N] (or N x K when trans_b), batches
// broadcast; rank >= 2 both. Of integers narrower than 32 bits (a and b may differ) the sums are
// i32.
struct MatMul {
  bool trans_a = false, trans_b = false;
  int64_t a_zero = 0;  // integers: what stands for 0 in a; sums are of (a - a_zero) * b
  // So many products of integers do not wrap, and a run with a larger extent K ends; 0: any may be
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
// [batch..., M, N]. Inputs a, b, scales, zeros: with c[n, k] the number of so many bits for column
// n and step k of the depth, in blocks g of the depth,
//   y[m, n] = sum over g of scales[n, g] * sum over k in g of a[m, k] * (c[n, k] - zeros[n, g]).
// b: u8 [N, blocks, block * bits / 8], low bits first; scales: [N, blocks]; zeros: the same or one
// number, []; both of a's type. With byte_rows each block of a row is taken in 8 bits: its largest
// magnitude becomes 127, the others are rounded.
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
// x: [N, C, spatial...]; padding never wins a max and counts in an average only with
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
struct Reduce {  // over axes (non-negative, sorted); keep: reduced axes stay with extent 1
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
struct ArgReduce {  // index (i64) of the largest or smallest element along axis
  bool smallest = false;
  int64_t axis = 0;
  bool keep = true, last = false;  // last: the last of equal ones
  template <class V>
  void fields(V& v) {
    v("smallest", smallest);
    v("axis", axis);
    v("keep", keep);
    v("last", last);
  }
};
// Along one axis; log: log-softmax; masked: rows of nothing but -inf give 0, not NaN (never with
// log)
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
// x, scale, optional bias; over all axes from `axis` on; biased variance; centred false: the mean
// counts as 0
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
struct Transpose {  // out axis i is in axis perm[i]
  Ints perm;
  template <class V>
  void fields(V& v) {
    v("perm", perm);
  }
};
struct Reshape {  // same elements in row-major order
  Shape shape;
  template <class V>
  void fields(V& v) {
    v("shape", shape);
  }
};
// Broadcast x to shape (of rank >= x's). exact: x has that shape already, which is to be looked at
// before a run where it depends on sizes.
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
// out[i...] = x[starts + steps * i ...]: one entry per axis; steps may be negative
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
// out[before..., indices..., after...] = x[before..., indices, after...]; negative indices count
// from the end, others outside are an error or, with `clamp`, mean the nearest element inside.
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
// The element at point p is that of x whose index along axis i is p[places[i]], or, where places[i]
// is -1, the element of the next index tensor at p: outside of x the nearest one inside; with
// `wrap` negative ones count from the end and others outside are an error.
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
// x, whose elements must lie in `range` (the least and the most; i32, i64) or all be true (bool,
// without a range): else the run ends, and says `what`.
struct Within {
  Shape range;
  std::string what;
  template <class V>
  void fields(V& v) {
    v("range", range);
    v("what", what);
  }
};
struct Iota {  // no inputs -> i64 of `shape`: the index along `axis`
  Shape shape;
  int64_t axis = 0;
  template <class V>
  void fields(V& v) {
    v("shape", shape);
    v("axis", axis);
  }
};
// Sums or products of all elements up to this one along axis; exclusive: before this one; reverse:
// from the end on
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
struct Pad {  // x, optional scalar value; begins/ends >= 0 per axis
  PadMode mode{};
  Shape begins, ends;
  template <class V>
  void fields(V& v) {
    v("mode", mode);
    v("begins", begins);
    v("ends", ends);
  }
};
struct Resize {  // to `shape`; scales[i] is the factor used for coordinates along axis i
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
// One direction of a recurrent network. x: [T, B, D*G*H], the input half of all gates; r: [D, G*H,
// H], of x's type, or of x in f32 also f16 and bf16; optional bias [D, 2*G*H] (of the input half,
// then of the recurrent one), lengths [B], h0 and c0 [D, B, H], peepholes [D, 3*H] -> the hidden
// states [T, B, H], then, with `states`, the last hidden state and the last cell as rows T and T+1.
// With r_scales [D, G*H], of an LSTM, r holds integers of 8 or 16 bits, and their products
// with the hidden states are in integers: the states of all sequences that take a step are rounded
// to u8 over their own range, with 0 in it, and the sum of products, in x's type, is
// multiplied by (scale of the states * r_scale).
// G gates in ONNX's order: h; z r h; i o f c. Steps at or behind a sequence's length leave the
// state alone and give 0. `row` is the direction's entry in D; f, g, h are ONNX's activations with
// alpha and beta each.
struct Recurrent {
  RecurrentKind kind{};
  GateFunction f{}, g{}, h{};
  std::vector<double> alphas{0, 0, 0}, betas{0, 0, 0};
  double clip = 0;  // of what enters f and g; 0: none
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
struct ShapeOf {  // i64[rank] of x
  template <class V>
  void fields(V&) {}
};
struct DimVector {  // i64[n] whose elements are dim expressions: what shape arithmetic folds to
  Shape values;
  bool scalar = false;  // rank 0 instead of [1]
  template <class V>
  void fields(V& v) {
    v("values", values);
    v("scalar", scalar);
  }
};
// A function of the runtime library (runtime/ops): what loops cannot say well, such as sorting. It
// says what its inputs, integers and reals mean and which outputs it has (ir/graph/externs.h);
// `dims` are extents of outputs that may hold symbols. Runs on the processor.
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
// condition (one bool), then the inputs of then_branch, then those of else_branch -> the outputs,
// which both branches have of equal types.
struct If {
  Region then_branch, else_branch;
  template <class V>
  void fields(V& v) {
    v("then_branch", then_branch);
    v("else_branch", else_branch);
  }
};
// Runs the body for iteration 0, 1, ... below the trip count (none: no limit) and, where it is
// conditional, while the condition is true. Inputs: the first condition (conditional), `carried`
// values, `sliced` values of which an iteration sees its row [iteration], the rest as they are. The
// body's outputs: the next condition (conditional), the carried values, a row of each stacked
// result. `iteration` is the body's symbol for the iteration, from 1. A carried value may have
// extents that grow with the iteration: the body's input at iteration + 1 is then what its output
// is at iteration. -> the carried values, the stacked results [trip, ...] (rows of iterations that
// were not made hold anything), the number of iterations (conditional). A value that grows has the
// extents that it has behind the last iteration below the trip count; where fewer iterations are
// made, its elements come first.
struct Loop {
  Region body;
  Shape trip;  // one extent, or none
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
// Re-stores x in another physical layout; the logical tensor is the same. The output type carries
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

// For visits of OpAttrs that name every operator, so that a new one does not compile unseen.
template <class Op, class... Ops>
concept OneOf = (std::same_as<Op, Ops> || ...);

// How an operator may be fused (TVM, OSDI'18, section 3).
enum class FusionClass : uint8_t {
  // One output element from one element of each input: element-wise, broadcast, data movement
  injective,
  reduction,    // many to one; its inputs may be fused injective ops
  complex_out,  // conv, matmul: element-wise ops may follow in the same kernel
  opaque,       // never fused
};

// Which inputs infer_types refuses before it asks the operator.
enum class ElementTypes : uint8_t {
  any,         // none: it moves its elements, or checks them itself
  arithmetic,  // those of types for storage alone: it calculates with its elements
};

struct TensorType;
struct Tensor;

struct OpInfo {
  const char* name;  // of the text form: "conv"
  FusionClass fusion;
  ElementTypes elements;
  // Max -1: any number; inputs above min may be absent (invalid ids)
  int min_inputs, max_inputs;
  // Output type from input types (absent inputs are null). Errors say which input and what would be
  // accepted.
  Expected<TensorType> (*infer)(const OpAttrs&, const std::vector<const TensorType*>&);
  // Naive reference: sums in double, result rounded to the output type. Static shapes only.
  Expected<Tensor> (*evaluate)(const OpAttrs&, const TensorType& out,
                               const std::vector<const Tensor*>&);
  // The same of an operator whose nodes may have several outputs; `infer` and `evaluate` are null.
  Expected<std::vector<TensorType>> (*infer_all)(const OpAttrs&,
                                                 const std::vector<const TensorType*>&) = nullptr;
  Expected<std::vector<Tensor>> (*evaluate_all)(const OpAttrs&, const std::vector<TensorType>& outs,
                                                const std::vector<const Tensor*>&) = nullptr;
};
// Indexed by OpAttrs::index(); the table is ir/graph/op_table.cpp, each op family's functions are
// in ir/graph/ops/*.cpp.
const std::array<OpInfo, kOpCount>& op_table();
inline const OpInfo& op_info(const OpAttrs& attrs) { return op_table()[attrs.index()]; }
// A node of several outputs is opaque: never fused, merged with an equal one or rewritten.
inline bool has_several_outputs(const OpAttrs& attrs) {
  return op_info(attrs).infer_all != nullptr;
}
// The graphs that a node of the operator runs.
std::vector<const Graph*> regions_of(const OpAttrs& attrs);
void for_each_region(OpAttrs& attrs, const std::function<void(Region&)>& fn);
bool equal(const OpAttrs& a, const OpAttrs& b);
// " strides=[2,2] group=1"; fields at their default are left out
std::string print_attrs(const OpAttrs& attrs);

}  // namespace tw
