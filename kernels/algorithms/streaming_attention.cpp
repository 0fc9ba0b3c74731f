// Attention in blocks of queries. Keys and values pass by in steps, with a running maximum and sum
// for each row (Dao, "FlashAttention-2", arXiv:2307.08691, after Milakov and Gimelshein,
// arXiv:1805.02867). A step computes
//   s = queries * keys, scaled and masked; now = max(top, the largest of the row in s);
//   factor = exp(top - now), top = now, s = exp(s - now);
//   sum = sum * factor + the row of s; o = o * factor + s * values.
// At the end y = o / sum. Keys behind the last one have scores of minus infinity, queries behind
// the last one are zeros, and only y asks where queries end. With a causal mask, a step is skipped
// if no query of the block sees its keys.
#include "kernels/algorithms/streaming_attention.h"

#include <array>
#include <limits>

#include "ir/graph/queries.h"
#include "ir/graph/short_floats.h"
#include "kernels/attention/parts.h"

namespace tw {
namespace {

class StreamingAttention {
 public:
  StreamingAttention(GroupBuilder& b, const AttentionParts& parts, const AttentionProblem& problem,
                     int64_t rows, int64_t keys)
      : b_(b), parts_(parts), problem_(problem), rows_(rows), keys_(keys) {
    m_.problem = problem, m_.rows = rows, m_.keys = keys;
  }

  Lowered<StreamingAttentionStages> run() {
    std::vector<Axis> blocks;
    for (const Expr& extent : parts_.outer) {
      blocks.push_back({"b" + std::to_string(blocks.size()), extent});
      batch_.push_back(var(blocks.back().name));
    }
    blocks.push_back({"ib", simplify(ceil_div(parts_.rows, rows_))});
    m_.blocks = loops(blocks);
    make_buffers();
    mask_ = causal_mask(b_.graph, b_.group, *parts_.softmax);
    if (mask_) define_by_places(b_, *mask_);
    b_.within(blocks, [&] {
      begin();
      const Axis steps{"kb", simplify(ceil_div(parts_.keys, keys_)), AxisRole::scan};
      b_.scan(steps, [&] { b_.when(seen(), [&] { step(); }); });
      end();
    });
    return b_.finish(std::move(m_));
  }

 private:
  using Part = StreamingAttentionStages::Part;
  using Value = std::function<Expr(const Expr& row, const Expr& column)>;

  void make_buffers() {
    const Expr rows(rows_);
    s_ = b_.temp("s", DType::f32, {rows, Expr(keys_)});
    o_ = b_.temp("o", DType::f32, {rows, Expr(problem_.columns)});
    const auto of_row = [&](const char* name) {
      const BufferId id = b_.temp(name, DType::f32, {rows});
      m_.row_state.push_back(b_.name_of(id));
      return id;
    };
    top_ = of_row("top"), now_ = of_row("now"), factor_ = of_row("factor");
    sum_ = of_row("sum"), inverse_ = of_row("inverse");
  }

  // A stage over the block's rows
  Part over_rows(const std::string& name, BufferId to, const std::function<Expr(const Expr&)>& made,
                 Combiner combiner = Combiner::none) {
    const Axis row{name + "_i", Expr(rows_)};
    b_.declare({row});
    const Expr i = var(row.name);
    return m_.of_rows.emplace_back(b_.stage(name, {row}, to, {i}, made(i), combiner), row.loop(),
                                   Loop());
  }
  // A stage over rows and columns, of which some combine the columns of a row
  Part over(const std::string& name, BufferId to, int64_t columns, const Value& made,
            Combiner combiner = Combiner::none, AxisRole role = AxisRole::spatial,
            const std::function<Expr(const Expr&)>& init = {}) {
    const std::vector<Axis> axes = {{name + "_i", Expr(rows_)}, {name + "_j", Expr(columns), role}};
    b_.declare(axes);
    const Index at = variables(axes), row = {at[0]};
    const Stage stage = b_.stage(name, axes, to, role == AxisRole::reduce ? row : at,
                                 made(at[0], at[1]), combiner, init ? init(at[0]) : Expr());
    return {stage, axes[0].loop(), axes[1].loop()};
  }
  StreamingAttentionStages::Product product(
      const std::string& name, BufferId to, int64_t columns, int64_t depth,
      const std::function<Expr(const Expr& row, const Expr& column, const Expr& step)>& made,
      const Expr& init) {
    const std::vector<Axis> axes = {{name + "_i", Expr(rows_)},
                                    {name + "_j", Expr(columns)},
                                    {name + "_k", Expr(depth), AxisRole::reduce}};
    b_.declare(axes);
    const Index at = variables(axes);
    const Stage stage = b_.stage(name, axes, to, {at[0], at[1]}, made(at[0], at[1], at[2]),
                                 Combiner::add, init);
    return {{stage, axes[0].loop(), axes[1].loop()}, axes[2].loop()};
  }

  Expr query_of(const Expr& row) const { return b_.simplified(var("ib") * Expr(rows_) + row); }
  Expr key_of(const Expr& column) const { return b_.simplified(var("kb") * Expr(keys_) + column); }
  static Expr kept(BufferId buffer, Index at) { return load(buffer, DType::f32, std::move(at)); }
  // A number as a factor of sums in f32
  Expr factor(const Expr& number) const {
    if (problem_.tf32) return unary(UnaryOp::tf32, number);
    return number.type() == DType::f32 ? number : cast(DType::f32, number);
  }
  // An operand's element, or 0 in rows that do not exist. across: the rows are its last axis.
  Expr element(ValueId v, const Expr& row, const Expr& rows, const Expr& column, bool across) {
    Index at = batch_index(b_.type(v).shape, joined(batch_, {row}));
    at.insert(at.end(), {across ? column : row, across ? row : column});
    const Expr there = b_.simplified(lt(row, rows)), value = b_.element(v, at);
    return factor(is_const(there, 1) ? value : select(there, value, imm(0, problem_.type)));
  }

  // True: a query of the block sees one of the step's keys. Undefined: always.
  Expr seen() const {
    if (!mask_) return {};
    return b_.simplified(le(key_of(Expr(0)), query_of(Expr(0)) + Expr(rows_ - 1 + mask_->offset)));
  }

  void begin() {
    over_rows("top_first", top_,
              [](const Expr&) { return imm(std::numeric_limits<float>::lowest(), DType::f32); });
    over_rows("sum_first", sum_, [](const Expr&) { return imm(0, DType::f32); });
    m_.of_output.push_back(over("o_first", o_, problem_.columns,
                                [](const Expr&, const Expr&) { return imm(0, DType::f32); }));
  }

  void step() {
    const bool across = !get_if<op::MatMul>(parts_.scores)->trans_b,
               values_across = get_if<op::MatMul>(parts_.product)->trans_b;
    m_.key_products = product(
        "acc", s_, keys_, problem_.depth,
        [&](const Expr& i, const Expr& j, const Expr& k) {
          return element(problem_.left, query_of(i), parts_.rows, k, false) *
                 element(problem_.right, key_of(j), parts_.keys, k, across);
        },
        imm(0, DType::f32));
    weights();
    m_.value_products = product(
        "o", o_, problem_.columns, keys_,
        [&](const Expr& i, const Expr& j, const Expr& k) {
          return factor(rounded_to(problem_.type, kept(s_, {i, k}))) *
                 element(problem_.values, key_of(k), parts_.keys, j, values_across);
        },
        Expr());
  }

  // Makes weights of the products, and scales the sums so far.
  void weights() {
    m_.of_scores.push_back(over("s", s_, keys_, [&](const Expr& i, const Expr& j) {
      return select(b_.simplified(lt(key_of(j), parts_.keys)), score(i, j),
                    imm(-std::numeric_limits<double>::infinity(), DType::f32));
    }));
    m_.top = over(
        "now", now_, keys_, [&](const Expr& i, const Expr& j) { return kept(s_, {i, j}); },
        Combiner::max, AxisRole::reduce, [&](const Expr& i) { return kept(top_, {i}); });
    over_rows("factor", factor_,
              [&](const Expr& i) { return exponential(kept(top_, {i}) - kept(now_, {i})); });
    over_rows("top", top_, [&](const Expr& i) { return kept(now_, {i}); });
    m_.of_scores.push_back(over("e", s_, keys_, [&](const Expr& i, const Expr& j) {
      return exponential(kept(s_, {i, j}) - kept(now_, {i}));
    }));
    const auto by_factor = [&](const Expr& i) { return kept(factor_, {i}); };
    over_rows("sum_scale", sum_, by_factor, Combiner::mul);
    m_.sum = over(
        "sum", sum_, keys_, [&](const Expr& i, const Expr& j) { return kept(s_, {i, j}); },
        Combiner::add, AxisRole::reduce);
    m_.of_output.push_back(over(
        "o_scale", o_, problem_.columns, [&](const Expr& i, const Expr&) { return by_factor(i); },
        Combiner::mul));
  }

  Expr score(const Expr& i, const Expr& j) {
    b_.define(parts_.scores->output,
              [&, type = b_.type(parts_.scores->output).dtype](const Index&) {
                return rounded_to(type, kept(s_, {i, j}));
              });
    const Expr row = b_.simplified(min(query_of(i), parts_.rows - Expr(1)));
    return in_f32(b_.element(parts_.softmax->inputs[0], joined(batch_, {row, key_of(j)})));
  }

  void end() {
    over_rows("inverse", inverse_,
              [&](const Expr& i) { return inverse_of_sum(parts_, kept(sum_, {i})); });
    const std::vector<Axis> axes = {{"y_i", Expr(rows_)}, {"y_j", Expr(problem_.columns)}};
    b_.declare(axes);
    const Expr i = var("y_i"), j = var("y_j"), row = query_of(i);
    const AttentionOutput to = attention_output(b_, parts_, joined(batch_, {row, j}));
    const Stage y = b_.stage(
        "y", axes, to.buffer, to.at,
        rounded_to(b_.type(parts_.product->output).dtype, kept(o_, {i, j}) * kept(inverse_, {i})),
        Combiner::none, {}, lt(row, parts_.rows));
    m_.y = {y, axes[0].loop(), axes[1].loop()};
  }

  GroupBuilder& b_;
  const AttentionParts parts_;
  const AttentionProblem problem_;
  int64_t rows_, keys_;
  Index batch_;
  std::optional<CausalMask> mask_;
  BufferId s_{}, o_{}, top_{}, now_{}, factor_{}, sum_{}, inverse_{};
  StreamingAttentionStages m_;
};

}  // namespace

std::optional<AttentionProblem> attention_problem(const Graph& graph, const Node& scores,
                                                  const Node& product,
                                                  const std::function<bool(ValueId)>& inside) {
  const auto type = [&](ValueId v) -> const TensorType& { return graph.value(v).type; };
  const Shape& s = type(scores.output).shape;
  const auto depth = as_const(type(scores.inputs[0]).shape.back()),
             columns = as_const(type(product.output).shape.back());
  if (!depth || !columns) return std::nullopt;
  AttentionProblem p;
  p.depth = *depth, p.columns = *columns;
  p.rows = as_const(s[s.size() - 2]), p.keys = as_const(s.back());
  p.batches = as_const(simplify(element_count(Shape(s.begin(), s.end() - 2))));
  const std::array<ValueId, 4> operands = {scores.inputs[0], scores.inputs[1], product.inputs[1],
                                           product.inputs[0]};
  const auto all = [&](const auto& holds) { return std::ranges::all_of(operands, holds); };
  p.tf32 = all([&](ValueId v) { return inside(v) && rounds_to_tf32(*graph.def(v)); });
  const bool widened = all([&](ValueId v) {
    return inside(v) && widens_short_float(graph, *graph.def(v)) &&
           type(graph.def(v)->inputs[0]).dtype == type(graph.def(operands[0])->inputs[0]).dtype;
  });
  const auto read = [&](ValueId v) { return p.tf32 || widened ? graph.def(v)->inputs[0] : v; };
  p.left = read(operands[0]), p.right = read(operands[1]), p.values = read(operands[2]);
  p.type = type(p.left).dtype;
  if (type(p.right).dtype != p.type || type(p.values).dtype != p.type) return std::nullopt;
  return p;
}

Lowered<StreamingAttentionStages> define_streaming_attention(GroupBuilder& b, const Node& product,
                                                             const AttentionProblem& problem,
                                                             int64_t rows, int64_t keys) {
  return StreamingAttention(b, attention_parts(b, product), problem, rows, keys).run();
}

}  // namespace tw
