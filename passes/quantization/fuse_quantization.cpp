// before: %c = conv(dequantize(%x, %xs, %xz), dequantize(%w, %ws), dequantize(%b, %xs * %ws))
//         %y = quantize(max(0, %c), %ys, %yz)
// after:  %a: i32 = conv(%x, %w, %b) x_zero=%xz
//         %y = cast(max(round(cast(%a) * const [xs * ws / ys]) + yz, yz)) to=i8 saturate=true
// This is the arithmetic of onnxruntime's QLinearConv, QLinearMatMul and QGemm on x86: sums in i32,
// one f32 product with the scale f32(f32(xs * ws) / ys), one rounding half to even. A clamp before
// the quantization is one of the quantized values, as rounding keeps the order. Without a quantize
// behind it, the product ends as f32(sum) * f32(xs * ws). quantize(dequantize(x)) with one scale is
// x. Products whose sums might not fit i32 stay floats. Why here: before constants are folded,
// which would make floats of dequantized weights.
#include <algorithm>
#include <cmath>

#include "ir/storage_types.h"
#include "passes/passes.h"
#include "passes/quantization/integer_form.h"
#include "passes/quantization/integer_sums.h"

namespace tw {
namespace {

// The largest relative difference between a bias's scale and the product of the operands' scales.
constexpr float kSameScale = 1e-5F;

// A convolution or matrix product of dequantized operands with the bias behind it, and the scale of
// its integer sums.
struct Product {
  NodeId node;
  Dequantized x, w;
  std::vector<float> scale;  // one for all, or one for each channel or column
  // The bias: an i32 constant in units of `scale`, or a float value of the convolution
  ValueId bias, float_bias;
};

class Fuser {
 public:
  explicit Fuser(Graph& graph) : rewriter_(graph), graph_(graph) {}

  Expected<bool> run(PassContext& context) {
    sink_dequantization(rewriter_);
    split_concatenations(rewriter_);
    for (NodeId id : graph_.order())
      if (!graph_.node(id).erased && get_if<op::Quantize>(&graph_.node(id))) fuse_into_quantize(id);
    // Goes from the end, as a product's bias is added behind it.
    const std::vector<NodeId> order = graph_.order();
    for (auto id = order.rbegin(); id != order.rend(); ++id)
      if (!graph_.node(*id).erased) fuse_product(*id);
    context.report = llvm::formatv("{0} products in integers, {1} of them to quantized results",
                                   products_, requantized_)
                         .str();
    if (const std::string floats = floats_between(graph_); !floats.empty())
      context.report += "; in floats behind dequantize: " + floats;
    return rewriter_.changed();
  }

 private:
  std::string name_of(NodeId id) const { return graph_.value(graph_.node(id).output).name; }
  ValueId number(NodeId like, const char* suffix, double value, DType t) {
    return rewriter_.add_constant(name_of(like) + suffix, from_doubles(t, {}, {value}));
  }

  // --- Operators in front of a quantize

  void fuse_into_quantize(NodeId id) {
    const std::optional<Quantization> to = quantization(graph_, graph_.node(id));
    if (!to || to->axis >= 0 || !all_plain(graph_, graph_.node(id))) return;
    if (unwrap(id, *to) || !is_byte(to->type)) return;
    drop_clamps(rewriter_, id, *to);
    if (unwrap(id, *to) || fuse_arithmetic(rewriter_, id, *to, ZeroPoint::after_rounding)) return;
    ValueId value = graph_.node(id).inputs[0];
    int64_t low = lowest_of(to->type), high = highest_of(to->type);
    for (std::optional<Clamp> c; rewriter_.uses(value) == 1 && (c = constant_clamp(graph_, value));
         value = c->x) {
      const int64_t bound = quantized_number(c->bound, to->scale[0], to->zero[0], to->type);
      (c->function == BinaryOp::max ? low : high) = std::clamp(bound, low, high);
    }
    if (rewriter_.uses(value) == 1) requantize(id, *to, value, low, high);
  }

  bool unwrap(NodeId id, const Quantization& to) {
    const std::optional<Dequantized> x = dequantized(graph_, graph_.node(id).inputs[0]);
    if (!x || !(x->by == to)) return false;
    rewriter_.replace(id, x->x);
    return true;
  }

  // --- Products

  std::optional<Product> product(ValueId value) const {
    const Node* node = graph_.def(value);
    if (!node || !all_plain(graph_, *node)) return std::nullopt;
    if (is_binary(node, BinaryOp::add)) return biased_product(*node);
    const auto* matmul = get_if<op::MatMul>(node);
    const auto* transposed = get_if<op::ConvTranspose>(node);
    if (!matmul && !transposed && !get_if<op::Conv>(node)) return std::nullopt;
    std::optional<Dequantized> x = dequantized(graph_, node->inputs[0]),
                               w = dequantized(graph_, node->inputs[1]);
    if (!x || !w || x->by.axis >= 0 || !is_byte(x->by.type) || !is_byte(w->by.type))
      return std::nullopt;
    const auto rank = static_cast<int64_t>(graph_.value(w->x).type.shape.size());
    const int64_t outputs = transposed ? 1 : !matmul ? 0 : rank - (matmul->trans_b ? 2 : 1);
    const bool constant = graph_.is_constant(w->x);
    if ((w->by.axis >= 0 && w->by.axis != outputs) || (!constant && (!matmul || w->by.axis >= 0)))
      return std::nullopt;
    if (w->by.axis >= 0 && matmul && rank != 2) return std::nullopt;
    Product p{graph_.value(value).def, *x, *w, {}, {}, {}};
    // Weights of a transposed convolution have the channels of one group, and all groups share
    // their scales.
    const int64_t repeats = transposed && w->by.axis >= 0 ? transposed->group : 1;
    for (int64_t i = 0; i < repeats; ++i)
      for (float scale : w->by.scale) p.scale.push_back(x->by.scale[0] * scale);
    const ValueId bias = matmul ? ValueId{} : input_or_none(*node, 2);
    if (!sums_fit(graph_, *node, *x, *w, {})) return std::nullopt;
    p.bias = integer_bias(bias, p);
    if (!p.bias.valid()) p.float_bias = bias;
    return p;
  }

  // Matches matmul(...) + bias.
  std::optional<Product> biased_product(const Node& sum) const {
    for (size_t side : {size_t{0}, size_t{1}}) {
      const ValueId value = sum.inputs[side], bias = sum.inputs[1 - side];
      if (!get_if<op::MatMul>(graph_.def(value)) || rewriter_.uses(value) != 1) continue;
      std::optional<Product> p = product(value);
      const Shape &shape = graph_.value(bias).type.shape, &out = graph_.value(value).type.shape;
      if (!p || shape.size() != 1 || !equal(Shape{shape[0]}, Shape{out.back()})) continue;
      p->bias = integer_bias(bias, *p);
      if (p->bias.valid()) return p;
    }
    return std::nullopt;
  }

  // The i32 constant of a dequantized bias, if its scale is that of the sums and the sums fit with
  // it.
  ValueId integer_bias(ValueId bias, const Product& p) const {
    const std::vector<float>& scale = p.scale;
    const std::optional<Dequantized> b = dequantized(graph_, bias);
    if (!b || b->by.type != DType::i32 || !graph_.is_constant(b->x) ||
        (b->by.scale.size() != 1 && b->by.scale.size() != scale.size()))
      return {};
    for (size_t i = 0; i < std::max(scale.size(), b->by.scale.size()); ++i) {
      const float wanted = scale[scale.size() == 1 ? 0 : i];
      if (b->by.zero_at(i) != 0 || std::abs(b->by.scale_at(i) - wanted) > kSameScale * wanted)
        return {};
    }
    return sums_fit(graph_, graph_.node(p.node), p.x, p.w, b->x) ? b->x : ValueId{};
  }

  // The right operand with its zero point subtracted: i8 if that fits, else i16.
  ValueId centered(const Product& p) {
    const Quantization& by = p.w.by;
    if (std::all_of(by.zero.begin(), by.zero.end(), [](int64_t z) { return z == 0; })) return p.w.x;
    if (!graph_.is_constant(p.w.x)) {
      const ValueId wide = rewriter_.add(op::Cast{DType::i16, false}, {p.w.x}, p.node, "wide");
      return rewriter_.add(
          op::Binary{BinaryOp::sub},
          {wide, number(p.node, "_w_zero", static_cast<double>(by.zero[0]), DType::i16)}, p.node,
          "centered");
    }
    const Tensor w = graph_.constant_tensor(p.w.x);
    int64_t inner = 1;
    for (size_t i = w.shape.size(); by.axis >= 0 && i-- > static_cast<size_t>(by.axis) + 1;)
      inner *= w.shape[i];
    const int64_t count = by.axis < 0 ? 1 : w.shape[static_cast<size_t>(by.axis)];
    Tensor out = Tensor::zeros(DType::i16, w.shape);
    bool fits = true;
    for (int64_t i = 0; i < w.size(); ++i) {
      const int64_t value = w.int_at(i) - by.zero_at(static_cast<size_t>(i / inner % count));
      out.set_int(i, value);
      fits &= value >= lowest_of(DType::i8) && value <= highest_of(DType::i8);
    }
    if (fits) {
      Tensor bytes = Tensor::zeros(DType::i8, w.shape);
      for (int64_t i = 0; i < w.size(); ++i) bytes.set_int(i, out.int_at(i));
      out = std::move(bytes);
    }
    return rewriter_.add_constant(name_of(p.node) + "_weights", out);
  }

  // Makes f32(sums + bias) * scale.
  ValueId scaled_sums(const Product& p, const std::vector<float>& scale) {
    OpAttrs attrs = graph_.node(p.node).attrs;
    std::vector<ValueId> inputs = {p.x.x, centered(p)};
    std::vector<int64_t> along = {static_cast<int64_t>(scale.size())};
    ValueId sums;
    auto* product = std::get_if<op::MatMul>(&attrs);
    if (!product) {
      if (auto* conv = std::get_if<op::Conv>(&attrs)) conv->x_zero = p.x.by.zero[0];
      else std::get<op::ConvTranspose>(attrs).x_zero = p.x.by.zero[0];
      along.resize(rewriter_.type(inputs[0]).shape.size() - 1, 1);
      if (p.bias.valid()) inputs.push_back(p.bias);
      sums = rewriter_.add(attrs, inputs, p.node, "sums");
    } else {
      product->a_zero = p.x.by.zero[0];
      product->most_products = most_products(graph_, *product, p.x, p.w);
      sums = rewriter_.add(attrs, inputs, p.node, "sums");
      if (p.bias.valid())
        sums = rewriter_.add(op::Binary{BinaryOp::add}, {sums, p.bias}, p.node, "biased");
    }
    ++products_;
    const ValueId real = rewriter_.add(op::Cast{DType::f32, false}, {sums}, p.node, "real");
    const Tensor factors = from_doubles(DType::f32,
                                        scale.size() == 1 ? std::vector<int64_t>{} : along,
                                        {scale.begin(), scale.end()});
    return rewriter_.add(op::Binary{BinaryOp::mul},
                         {real, rewriter_.add_constant(name_of(p.node) + "_scale", factors)},
                         p.node, "scaled");
  }

  void requantize(NodeId id, const Quantization& to, ValueId value, int64_t low, int64_t high) {
    const std::optional<Product> p = product(value);
    if (!p || p->float_bias.valid() || rewriter_.uses(graph_.node(p->node).output) != 1) return;
    std::vector<float> scale = p->scale;
    for (float& s : scale) s /= to.scale[0];
    const ValueId scaled = scaled_sums(*p, scale);
    IntegerForm(rewriter_, id)
        .finish(rewriter_.add(op::Unary{UnaryOp::round}, {scaled}, id, "rounded"),
                {to.type, to.zero[0], low, high});
    ++requantized_;
  }

  // Rewrites a product that is not part of a quantize.
  void fuse_product(NodeId id) {
    const std::optional<Product> p = product(graph_.node(id).output);
    if (!p) return;
    ValueId y = scaled_sums(*p, p->scale);
    if (p->float_bias.valid()) {
      Shape along(rewriter_.type(y).shape.size() - 1, Expr(1));
      along[0] = rewriter_.type(p->float_bias).shape[0];
      y = rewriter_.add(op::Binary{BinaryOp::add},
                        {y, rewriter_.add(op::Reshape{along}, {p->float_bias}, id, "channels")}, id,
                        "biased");
    }
    rewriter_.replace(id, y);
  }

  Rewriter rewriter_;
  Graph& graph_;
  int products_ = 0, requantized_ = 0;
};

}  // namespace

Expected<bool> fuse_quantization(Graph& graph, PassContext& context) {
  return Fuser(graph).run(context);
}

}  // namespace tw
