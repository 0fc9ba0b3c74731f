// Attention as it is defined, in f32 from the scores on:
//
//   for i in rows { for j in keys {
//     for k in depth reduce { acc: acc[i, j] += q[i, k] * k[j, k] init 0 }
//     s: s[i, j] = score of acc[i, j]
//   } }
//   top: top[i] max= s[i, j]              over all keys
//   e: e[i, j] = exp(s[i, j] - top[i])    rounded to the type in which the product takes it
//   sum: sum[i] += e[i, j]                over all keys
//   inv: inv[i] = 1 / sum[i]
//   o: o[i, c] += e[i, j] * v[j, c]       over all keys
//   y: y[i, c] = o[i, c] * inv[i]
//
// All of it runs for each batch. With a causal mask, everything asks whether the row sees the key.
#include <limits>

#include "ir/graph/queries.h"
#include "ir/graph/short_floats.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/parts.h"
#include "kernels/common/group_builder.h"
#include "kernels/common/short_operands.h"
#include "kernels/common/top_number.h"

namespace tw {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class AttentionDefinition {
 public:
  AttentionDefinition(GroupBuilder& b, const Node& product)
      : b_(b),
        parts_(attention_parts(b, product)),
        mask_(causal_mask(b.graph, b.group, *parts_.softmax)) {
    if (mask_) show_keys();
    m_.causal = mask_.has_value();
  }

  Lowered<AttentionStages> run() {
    key_products();
    scores();
    const BufferId top = fold("top", s_, Combiner::max, m_.top);
    exponentials(top);
    const BufferId sum = fold("sum", e_, Combiner::add, m_.sum);
    inverse(sum);
    value_products();
    result();
    return b_.finish(std::move(m_));
  }

 private:
  // The mask's elements are only asked for where a row sees the key. Adding -0 changes no number.
  void show_keys() {
    const DType type = b_.type(mask_->mask).dtype;
    const Expr shows = type == DType::boolean ? int_imm(mask_->sees, type) : imm(-0.0, type);
    b_.define(mask_->mask, [shows](const Index&) { return shows; });
  }
  // Axes NAME_b0.., NAME_i over the queries
  std::vector<Axis> row_axes(const std::string& name) const {
    std::vector<Axis> axes;
    for (size_t i = 0; i < parts_.outer.size(); ++i)
      axes.push_back({name + "_b" + std::to_string(i), parts_.outer[i]});
    axes.push_back({name + "_i", parts_.rows});
    return axes;
  }
  std::vector<Axis> axes_over(const std::string& name, const Expr& last) const {
    std::vector<Axis> axes = row_axes(name);
    axes.push_back({name + "_j", last});
    return axes;
  }
  // True: the row sees the key. Undefined: each row sees all keys.
  Expr seen(const Expr& row, const Expr& key) const {
    return mask_ ? le(key, row + Expr(mask_->offset)) : Expr();
  }
  // An element of an operand in f32
  Expr widened(ValueId v, const Index& at) const {
    const Expr e = b_.element(v, at);
    return e.type() == DType::f32 ? e : cast(DType::f32, e);
  }
  // The element of a right operand for a step of the depth and a column
  Expr right_element(const Node& node, const Index& row, const Expr& step,
                     const Expr& column) const {
    const bool turned = get_if<op::MatMul>(&node)->trans_b;
    return widened(node.inputs[1], joined(batch_index(b_.type(node.inputs[1]).shape, row),
                                          {turned ? column : step, turned ? step : column}));
  }
  AttentionStages::Product product_of(const Node& node, const Stage& stage,
                                      const std::vector<Axis>& axes) const {
    const Node read = with_short_operands(b_, node);
    const size_t n = axes.size();
    return {stage,
            axes[n - 3].loop(),
            axes[n - 2].loop(),
            axes[n - 1].loop(),
            b_.type(read.inputs[0]).dtype,
            b_.type(read.inputs[1]).dtype,
            1,
            {}};
  }

  void key_products() {
    std::vector<Axis> axes = axes_over("acc", parts_.keys);
    const Index at = variables(axes), row(at.begin(), at.end() - 1);
    acc_ = b_.temp("acc", DType::f32, extents(axes));
    axes.push_back({"acc_k", parts_.depth, AxisRole::reduce});
    b_.declare(axes);
    const Expr step = var("acc_k");
    const ValueId left = parts_.scores->inputs[0];
    const Index query = joined(batch_index(b_.type(left).shape, row), {row.back(), step});
    const Stage stage = b_.stage(
        "acc", axes, acc_, at,
        widened(left, query) * right_element(*parts_.scores, row, step, at.back()), Combiner::add,
        imm(0, DType::f32), seen(row.back(), at.back()));
    m_.key_products = product_of(*parts_.scores, stage, axes);
  }

  void scores() {
    const std::vector<Axis> axes = axes_over("s", parts_.keys);
    b_.declare(axes);
    const Index at = variables(axes);
    b_.define(parts_.scores->output,
              [this, at, dtype = b_.type(parts_.scores->output).dtype](const Index&) {
                return rounded_to(dtype, load(acc_, DType::f32, at));
              });
    s_ = b_.temp("s", DType::f32, extents(axes));
    m_.scores = b_.stage("s", axes, s_, at, in_f32(b_.element(parts_.softmax->inputs[0], at)),
                         Combiner::none, {}, seen(at[at.size() - 2], at.back()));
    m_.scores_row = axes[axes.size() - 2].loop(), m_.scores_column = axes.back().loop();
  }

  // Combines the keys of each row.
  BufferId fold(const std::string& name, BufferId from, Combiner combiner,
                AttentionStages::Fold& made) {
    std::vector<Axis> axes = row_axes(name);
    const Index row = variables(axes);
    const BufferId to = b_.temp(name, DType::f32, extents(axes));
    axes.push_back({name + "_j", parts_.keys, AxisRole::reduce});
    b_.declare(axes);
    const Expr key = var(name + "_j"),
               e = in_f32(load(from, b_.dtype_of(from), joined(row, {key})));
    const bool highest = combiner == Combiner::max;
    made.total = b_.stage(name, axes, to, row, highest ? top_candidate(e) : e, combiner,
                          imm(highest ? -kInfinity : 0, DType::f32), seen(row.back(), key));
    made.row = axes[axes.size() - 2].loop(), made.keys = axes.back().loop();
    return to;
  }

  void exponentials(BufferId top) {
    const std::vector<Axis> axes = axes_over("e", parts_.keys);
    const Index at = variables(axes), row(at.begin(), at.end() - 1);
    const DType taken = b_.type(with_short_operands(b_, *parts_.product).inputs[0]).dtype;
    e_ = b_.temp("e", is_short_float(taken) ? taken : DType::f32, extents(axes));
    Expr highest = load(top, DType::f32, row);
    // A finite number, so that e is 0 where everything is masked.
    if (get_if<op::Softmax>(parts_.softmax)->masked)
      highest = max(imm(std::numeric_limits<float>::lowest(), DType::f32), highest);
    const Expr power = exponential(load(s_, DType::f32, at) - highest);
    m_.exponentials = b_.stage("e", axes, e_, at, rounded_to(b_.dtype_of(e_), power),
                               Combiner::none, {}, seen(row.back(), at.back()));
    m_.exponentials_row = axes[axes.size() - 2].loop();
    m_.exponentials_column = axes.back().loop();
  }

  void inverse(BufferId sum) {
    const std::vector<Axis> axes = row_axes("inv");
    inverse_ = b_.temp("inv", DType::f32, extents(axes));
    m_.inverse = b_.stage("inv", axes, inverse_, variables(axes),
                          inverse_of_sum(parts_, load(sum, DType::f32, variables(axes))));
    m_.inverse_row = axes.back().loop();
  }

  void value_products() {
    std::vector<Axis> axes = axes_over("o", parts_.columns);
    const Index at = variables(axes), row(at.begin(), at.end() - 1);
    o_ = b_.temp("o", DType::f32, extents(axes));
    axes.push_back({"o_k", parts_.keys, AxisRole::reduce});
    b_.declare(axes);
    const Expr key = var("o_k");
    const Stage stage = b_.stage("o", axes, o_, at,
                                 in_f32(load(e_, b_.dtype_of(e_), joined(row, {key}))) *
                                     right_element(*parts_.product, row, key, at.back()),
                                 Combiner::add, imm(0, DType::f32), seen(row.back(), key));
    m_.value_products = product_of(*parts_.product, stage, axes);
  }

  void result() {
    const std::vector<Axis> axes = axes_over("y", parts_.columns);
    b_.declare(axes);
    const Index logical = variables(axes), row(logical.begin(), logical.end() - 1);
    const AttentionOutput y = attention_output(b_, parts_, logical);
    m_.y = b_.stage("y", axes, y.buffer, y.at,
                    rounded_to(b_.type(parts_.product->output).dtype,
                               load(o_, DType::f32, logical) * load(inverse_, DType::f32, row)));
    m_.batches = loops(axes);
    m_.column = m_.batches.back(), m_.batches.pop_back();
    m_.row = m_.batches.back(), m_.batches.pop_back();
  }

  GroupBuilder& b_;
  AttentionParts parts_;
  std::optional<CausalMask> mask_;
  AttentionStages m_;
  BufferId acc_{}, s_{}, e_{}, inverse_{}, o_{};
};

}  // namespace

Lowered<AttentionStages> define_attention(GroupBuilder& b, const Node& product) {
  return AttentionDefinition(b, product).run();
}

}  // namespace tw
