// Attention in blocks of queries (kernels/attention/blocks.h). Each block copies its queries qt
// into the memory that its threads share. Then each step copies some keys kt and values vt and
// computes:
//   s = qt * kt, scaled and masked; part = the largest of a thread's scores;
//   now = the row's largest so far, factor = exp(top - now), s = exp(s - now),
//   sum = sum * factor + s, o = o * factor, top = now;
//   o += s * vt.
// At the end y = o / sum. The scores, o, and the state of a row stay in registers of the threads to
// which the deal gives them (kernels/attention/deal.h). Columns, depth, queries and keys are padded
// to whole tiles; only the copies and y check where the tensors end. With a causal mask, a step is
// skipped if no query of the block sees its keys.
#include <limits>
#include <numbers>

#include "ir/graph/queries.h"
#include "kernels/attention/block_stages.h"

namespace tw {
namespace {

Expr power_of_two(const Expr& difference) {
  return unary(UnaryOp::exp2, difference * imm(std::numbers::log2e, DType::f32));
}

}  // namespace

std::vector<Axis> axes_of(const std::string& name, const std::vector<int64_t>& extents,
                          AxisRole role) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < extents.size(); ++i)
    axes.push_back({name + std::to_string(i), Expr(extents[i]), role});
  return axes;
}

std::vector<Axis> joined(std::vector<Axis> axes, const std::vector<Axis>& more) {
  axes.insert(axes.end(), more.begin(), more.end());
  return axes;
}

AttentionBlocks::AttentionBlocks(TargetBuilder& b, const AttentionParts& parts,
                                 const AttentionProblem& problem, const AttentionTile& tile)
    : b_(b), parts_(parts), problem_(problem), tile_(tile) {}

Lowered<AttentionBlockStages> AttentionBlocks::run() {
  m_.thread_count = scores_.thread_count();
  std::vector<Axis> blocks;
  for (size_t i = 0; i < parts_.outer.size(); ++i) {
    blocks.push_back({"b" + std::to_string(i), parts_.outer[i]});
    batch_.push_back(var(blocks.back().name));
  }
  blocks.push_back({"ib", simplify(ceil_div(parts_.rows, tile_.rows))});
  m_.blocks = loops(blocks);
  make_buffers();
  take_mask();
  b_.within(blocks, [&] {
    copy_queries();
    begin();
    const Axis steps{"kb", simplify(ceil_div(parts_.keys, tile_.keys)), AxisRole::scan};
    b_.scan(steps, [&] {
      b_.when(seen(), [&] {
        copy_step();
        key_products();
        scores();
        weights();
        value_products();
      });
    });
    end();
  });
  return b_.finish(std::move(m_));
}

std::vector<Axis> AttentionBlocks::threads(const std::string& name) {
  const std::vector<Axis> axes = axes_of(name + "_t", scores_.threads);
  b_.declare(axes);
  m_.threads.push_back(loops(axes));
  return axes;
}

std::vector<Axis> AttentionBlocks::unrolled(const std::vector<Axis>& axes) {
  b_.declare(axes);
  for (const Axis& axis : axes) m_.unrolled.push_back(axis.loop());
  return axes;
}

std::vector<Axis> AttentionBlocks::rows(const std::string& name) {
  return unrolled(axes_of(name + "_r", scores_.rows));
}

std::vector<Axis> AttentionBlocks::columns(const std::string& name, const Deal& deal,
                                           AxisRole role) {
  return unrolled(axes_of(name + "_c", deal.columns, role));
}

BufferId AttentionBlocks::own(const std::string& name, DType type, const Shape& shape) {
  const BufferId id = b_.temp(name, type, shape);
  m_.own.push_back(b_.name_of(id));
  return id;
}

BufferId AttentionBlocks::shared(const std::string& name, DType type, const Shape& shape) {
  const BufferId id = b_.temp(name, type, shape);
  m_.shared.push_back(b_.name_of(id));
  return id;
}

Index AttentionBlocks::simplified(Index index) const {
  for (Expr& e : index) e = b_.simplified(e);
  return index;
}

void AttentionBlocks::keep_apart(BufferId tile, int64_t elements) {
  m_.apart.push_back({b_.name_of(tile), elements});
}

void AttentionBlocks::make_buffers() {
  const Expr rows(tile_.rows), keys(tile_.keys);
  qt_ = shared("qt", problem_.type, {rows, Expr(depth_)});
  kt_ = shared("kt", problem_.type, {keys, Expr(depth_)});
  vt_ = shared("vt", problem_.type, {keys, Expr(columns_)});
  part_ = shared("part", DType::f32, {rows, Expr(scores_.across)});
  s_ = own("s", DType::f32, scores_.shape);
  o_ = own("o", DType::f32, output_.shape);
  top_ = own("top", DType::f32, scores_.row_shape());
  sum_ = own("sum", DType::f32, scores_.row_shape());
  const Shape thread_rows = extents(axes_of("", scores_.rows));
  now_ = own("now", DType::f32, thread_rows);
  factor_ = own("factor", DType::f32, thread_rows);
  most_ = own("most", DType::f32, thread_rows);
  total_ = own("total", DType::f32, thread_rows);
}

// The elements of a causal mask follow from their places.
void AttentionBlocks::take_mask() {
  mask_ = causal_mask(b_.graph, b_.group, *parts_.softmax);
  if (mask_) define_by_places(b_, *mask_);
}

// True: a query of the block sees one of the step's keys. Undefined: always.
Expr AttentionBlocks::seen() const {
  if (!mask_) return {};
  return b_.simplified(le(var("kb") * Expr(tile_.keys),
                          var("ib") * Expr(tile_.rows) + Expr(tile_.rows - 1 + mask_->offset)));
}

// Copies a tile [rows, elements] of an operand, with zeros beyond its end.
void AttentionBlocks::copy(const std::string& name, BufferId to, int64_t rows, const Expr& first,
                           const Expr& row_count, int64_t elements, int64_t element_count,
                           ValueId v, bool rows_last) {
  const std::vector<Axis> axes = {{name + "_i", Expr(rows)}, {name + "_j", Expr(elements)}};
  b_.declare(axes);
  const Expr row = b_.simplified(first + var(axes[0].name)), element = var(axes[1].name);
  Index at = batch_index(b_.type(v).shape, joined(batch_, {row}));
  at.insert(at.end(), {rows_last ? element : row, rows_last ? row : element});
  const Expr there = b_.simplified(
      logical_and(lt(row, row_count), lt(element, Expr(element_count))));
  const Expr value = b_.element(v, at);
  const Stage stage = b_.stage(
      name, axes, to, variables(axes),
      is_const(there, 1) ? value : select(there, value, imm(0, problem_.type)));
  m_.copies.push_back({stage, loops(axes)});
}

void AttentionBlocks::copy_queries() {
  copy("q", qt_, tile_.rows, var("ib") * Expr(tile_.rows), parts_.rows, depth_, problem_.depth,
       problem_.left, false);
}

void AttentionBlocks::copy_step() {
  const Expr first = var("kb") * Expr(tile_.keys);
  copy("k", kt_, tile_.keys, first, parts_.keys, depth_, problem_.depth, problem_.right,
       !get_if<op::MatMul>(parts_.scores)->trans_b);
  copy("v", vt_, tile_.keys, first, parts_.keys, columns_, problem_.columns, problem_.values,
       get_if<op::MatMul>(parts_.product)->trans_b);
}

void AttentionBlocks::clear(const std::string& name, BufferId sums, const Deal& deal,
                            const Index& thread) {
  const std::vector<Axis> r = rows(name), c = columns(name, deal);
  b_.stage(name, joined(r, c), sums, simplified(deal.place(thread, variables(r), variables(c))),
           imm(0, DType::f32));
}

void AttentionBlocks::begin() {
  const std::vector<Axis> t = threads("begin");
  b_.within(t, [&] {
    const std::vector<Axis> r = rows("begin");
    const Index at = joined(variables(t), variables(r));
    b_.nest(r, {{"top_first", top_, at, imm(std::numeric_limits<float>::lowest(), DType::f32), {}},
                {"sum_first", sum_, at, imm(0, DType::f32), {}}});
    clear("o_first", o_, output_, variables(t));
  });
}

// Scales and masks the scores in place of the sums, and finds the largest in each thread's row.
void AttentionBlocks::scores() {
  const std::vector<Axis> t = threads("s");
  const Index thread = variables(t);
  b_.within(t, [&] {
    const std::vector<Axis> r = rows("s"), c = columns("s", scores_);
    const Index at = simplified(scores_.place(thread, variables(r), variables(c)));
    b_.define(parts_.scores->output,
              [this, at, type = b_.type(parts_.scores->output).dtype](const Index&) {
                return rounded_to(type, load(s_, DType::f32, at));
              });
    const Expr row = row_of(thread, variables(r)),
               key = b_.simplified(var("kb") * Expr(tile_.keys) +
                                   scores_.column_at(thread, variables(c)));
    const Index logical = joined(batch_, {min(row, parts_.rows - Expr(1)), key});
    const Expr score = in_f32(b_.element(parts_.softmax->inputs[0], simplified(logical)));
    b_.stage("s", joined(r, c), s_, at,
             select(b_.simplified(lt(key, parts_.keys)), score,
                    imm(-std::numeric_limits<double>::infinity(), DType::f32)));
    fold("most", most_, s_, Combiner::max, std::numeric_limits<float>::lowest(), thread);
    const std::vector<Axis> p = rows("most_part");
    to_part("most_part", most_, variables(p), thread, p);
  });
}

Expr AttentionBlocks::row_of(const Index& thread, const Index& row) const {
  return b_.simplified(var("ib") * Expr(tile_.rows) + scores_.row_at(thread, row));
}

// Combines each of a thread's rows over its columns.
void AttentionBlocks::fold(const std::string& name, BufferId to, BufferId from, Combiner combiner,
                           double identity, const Index& thread) {
  const std::vector<Axis> zr = rows(name + "_first");
  b_.stage(name + "_first", zr, to, variables(zr), imm(identity, DType::f32));
  const std::vector<Axis> r = rows(name), c = columns(name, scores_, AxisRole::reduce);
  b_.stage(name, joined(r, c), to, variables(r),
           load(from, DType::f32, simplified(scores_.place(thread, variables(r), variables(c)))),
           combiner);
}

// Shows the other threads this thread's part of its rows.
void AttentionBlocks::to_part(const std::string& name, BufferId from, const Index& at,
                              const Index& thread, const std::vector<Axis>& rows) {
  b_.stage(name, rows, part_,
           simplified({scores_.row_at(thread, variables(rows)), scores_.part(thread)}),
           load(from, DType::f32, at));
}

// Combines the parts of all threads that share a row.
void AttentionBlocks::over_parts(const std::string& name, BufferId to, Combiner combiner,
                                 const Index& thread) {
  const std::vector<Axis> r = rows(name),
                          c = unrolled(axes_of(name + "_w", {scores_.across}, AxisRole::reduce));
  const Expr row = b_.simplified(scores_.row_at(thread, variables(r)));
  b_.stage(name, joined(r, c), to, variables(r), load(part_, DType::f32, {row, variables(c)[0]}),
           combiner);
}

// Computes the exponentials and rescales the sums so far.
void AttentionBlocks::weights() {
  const std::vector<Axis> t = threads("e");
  const Index thread = variables(t);
  b_.within(t, [&] {
    const auto kept = [&](BufferId id, const Index& row) {
      return load(id, DType::f32, joined(thread, row));
    };
    const std::vector<Axis> n = rows("now_first");
    b_.stage("now_first", n, now_, variables(n), kept(top_, variables(n)));
    over_parts("now", now_, Combiner::max, thread);
    const std::vector<Axis> f = rows("factor");
    const Index row = variables(f);
    const Expr now = load(now_, DType::f32, row), factor = load(factor_, DType::f32, row);
    b_.nest(f, {{"factor", factor_, row, power_of_two(kept(top_, row) - now), {}},
                {"top", top_, joined(thread, row), now, {}},
                {"sum_scale", sum_, joined(thread, row), kept(sum_, row) * factor, {}}});
    const std::vector<Axis> r = rows("e"), c = columns("e", scores_);
    const Index at = simplified(scores_.place(thread, variables(r), variables(c)));
    b_.stage("e", joined(r, c), s_, at,
             power_of_two(load(s_, DType::f32, at) - load(now_, DType::f32, variables(r))));
    const std::vector<Axis> sr = rows("sum"), sc = columns("sum", scores_, AxisRole::reduce);
    b_.stage("sum", joined(sr, sc), sum_, joined(thread, variables(sr)),
             load(s_, DType::f32, simplified(scores_.place(thread, variables(sr), variables(sc)))),
             Combiner::add);
    hand_over(thread);
    const std::vector<Axis> orows = rows("o_scale"), oc = columns("o_scale", output_);
    b_.stage("o_scale", joined(orows, oc), o_,
             simplified(output_.place(thread, variables(orows), variables(oc))),
             load(factor_, DType::f32, variables(orows)), Combiner::mul);
  });
}

void AttentionBlocks::end() {
  const std::vector<Axis> t = threads("end");
  b_.within(t, [&] {
    const std::vector<Axis> r = rows("sum_part");
    to_part("sum_part", sum_, joined(variables(t), variables(r)), variables(t), r);
  });
  const std::vector<Axis> y = threads("y");
  const Index thread = variables(y);
  b_.within(y, [&] {
    const std::vector<Axis> zr = rows("total_first");
    b_.stage("total_first", zr, total_, variables(zr), imm(0, DType::f32));
    over_parts("total", total_, Combiner::add, thread);
    const std::vector<Axis> ir = rows("inverse");
    Expr total = load(total_, DType::f32, variables(ir));
    // A row whose keys are all masked gives 0.
    if (get_if<op::Softmax>(parts_.softmax)->masked)
      total = select(eq(total, imm(0, DType::f32)), imm(1, DType::f32), total);
    b_.stage("inverse", ir, total_, variables(ir),
             binary(BinaryOp::div, imm(1, DType::f32), total));
    write(thread);
  });
}

void AttentionBlocks::write(const Index& thread) {
  const std::vector<Axis> r = rows("y"), c = axes_of("y_c", output_.columns);
  b_.declare(c);
  m_.unrolled.push_back(c[0].loop());
  const bool whole = problem_.columns % output_.columns[1] == 0;
  (whole ? m_.vectors : m_.unrolled).push_back(c[1].loop());
  const Expr row = row_of(thread, variables(r)),
             column = b_.simplified(output_.column_at(thread, variables(c)));
  const AttentionOutput to = attention_output(b_, parts_, joined(batch_, {row, column}));
  const Index at = simplified(output_.place(thread, variables(r), variables(c)));
  b_.stage("y", joined(r, c), to.buffer, to.at,
           rounded_to(b_.type(parts_.product->output).dtype,
                      load(o_, DType::f32, at) * load(total_, DType::f32, variables(r))),
           Combiner::none, {},
           logical_and(lt(row, parts_.rows), lt(column, Expr(problem_.columns))));
}

}  // namespace tw
