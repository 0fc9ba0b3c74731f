// The two products of attention in blocks. Single threads read vectors of four from the shared
// memory. For an instruction, the threads of a warp load its operands together. A warp has some of
// the block's rows and all its columns, so few threads share a row. Where the thread that has a
// weight also multiplies it, as with f16, weights stay in registers. Otherwise they pass through
// the shared memory (pt).
#include <algorithm>

#include "ir/graph/queries.h"
#include "kernels/attention/block_stages.h"
#include "kernels/attention/other_tiles.h"
#include "kernels/device/fragment_load.h"

namespace tw {
namespace {

constexpr int64_t kVector = 4;  // f32 elements that a thread loads at once

int64_t in_whole(int64_t n, int64_t part) { return (n + part - 1) / part * part; }

class ScalarBlocks : public AttentionBlocks {
 public:
  ScalarBlocks(TargetBuilder& b, const AttentionParts& parts, const AttentionProblem& problem,
               const AttentionTile& tile)
      : AttentionBlocks(b, parts, problem, tile) {
    const int64_t vector = value_vector(problem, tile);
    depth_ = padded_depth(problem, nullptr);
    columns_ = padded_columns(problem, tile, nullptr);
    scores_ = scalar_deal(tile.rows, tile.keys, tile.thread_rows, tile.across, 1);
    output_ = scalar_deal(tile.rows, columns_, tile.thread_rows, tile.across, vector);
  }

 private:
  void key_products() override {
    keep_apart(qt_, kVector), keep_apart(kt_, kVector);
    const std::vector<Axis> t = threads("acc");
    const Index thread = variables(t);
    b_.within(t, [&] {
      clear("acc_first", s_, scores_, thread);
      const Axis step{"acc_k", Expr(depth_ / kVector), AxisRole::reduce};
      b_.within({step}, [&] {
        const Expr queries(tile_.thread_rows), keys(scores_.columns[0]);
        const BufferId q = vectors("qf", qt_, queries, var(step.name),
                                   [&](const Expr& r) { return scores_.row_at(thread, {r}); });
        const BufferId k = vectors("kf", kt_, keys, var(step.name), [&](const Expr& c) {
          return scores_.column_at(thread, {c, Expr(0)});
        });
        add_products("acc", s_, scores_, thread,
                     [&](const Index& r, const Index& c, const Expr& e) {
                       return load(q, DType::f32, {r[0], e}) * load(k, DType::f32, {c[0], e});
                     });
      });
    });
  }

  void hand_over(const Index& thread) override {
    pt_ = shared("pt", DType::f32, {Expr(tile_.rows), Expr(tile_.keys)});
    keep_apart(pt_, tile_.across);
    const std::vector<Axis> r = rows("p"), c = columns("p", scores_);
    b_.stage(
        "p", joined(r, c), pt_,
        simplified({scores_.row_at(thread, variables(r)), scores_.column_at(thread, variables(c))}),
        load(s_, DType::f32, simplified(scores_.place(thread, variables(r), variables(c)))));
  }

  void value_products() override {
    const std::vector<Axis> t = threads("o");
    const Index thread = variables(t);
    b_.within(t, [&] {
      const Axis step{"o_k", Expr(tile_.keys / kVector), AxisRole::reduce};
      b_.within({step}, [&] {
        const BufferId p = vectors("pf", pt_, Expr(tile_.thread_rows), var(step.name),
                                   [&](const Expr& r) { return scores_.row_at(thread, {r}); });
        const BufferId v = values(var(step.name) * Expr(kVector), thread);
        add_products("o", o_, output_, thread, [&](const Index& r, const Index& c, const Expr& e) {
          return load(p, DType::f32, {r[0], e}) * load(v, DType::f32, {e, c[0], c[1]});
        });
      });
    });
  }

  // Loads a vector from each of some rows of a tile in the shared memory, in f32.
  BufferId vectors(const std::string& name, BufferId from, const Expr& count, const Expr& step,
                   const std::function<Expr(const Expr&)>& row) {
    const std::vector<Axis> axes = {{name + "_i", count}, {name + "_v", Expr(kVector)}};
    b_.declare(axes);
    m_.unrolled.push_back(axes[0].loop()), m_.vectors.push_back(axes[1].loop());
    const BufferId to = own(name, DType::f32, extents(axes));
    const Expr element = step * Expr(kVector) + var(axes[1].name);
    b_.stage(
        name, axes, to, variables(axes),
        in_f32(load(from, b_.dtype_of(from), {b_.simplified(row(var(axes[0].name))), element})));
    return to;
  }

  // Loads a thread's columns of some keys' values, in f32.
  BufferId values(const Expr& first, const Index& thread) {
    const std::vector<Axis> axes = {{"vf_k", Expr(kVector)},
                                    {"vf_g", Expr(output_.columns[0])},
                                    {"vf_v", Expr(output_.columns[1])}};
    b_.declare(axes);
    m_.unrolled.insert(m_.unrolled.end(), {axes[0].loop(), axes[1].loop()});
    m_.vectors.push_back(axes[2].loop());
    const BufferId to = own("vf", DType::f32, extents(axes));
    const Index at = variables(axes);
    b_.stage(
        "vf", axes, to, at,
        in_f32(load(vt_, problem_.type,
                    {first + at[0], b_.simplified(output_.column_at(thread, {at[1], at[2]}))})));
    return to;
  }

  void add_products(const std::string& name, BufferId sums, const Deal& deal, const Index& thread,
                    const std::function<Expr(const Index&, const Index&, const Expr&)>& product) {
    const std::vector<Axis> e = unrolled({{name + "_e", Expr(kVector), AxisRole::reduce}}),
                            r = rows(name), c = columns(name, deal);
    b_.stage(name, joined(joined(e, r), c), sums, deal.place(thread, variables(r), variables(c)),
             product(variables(r), variables(c), var(e[0].name)), Combiner::add);
  }

  BufferId pt_{};
};

class InstructionBlocks : public AttentionBlocks {
 public:
  InstructionBlocks(TargetBuilder& b, const AttentionParts& parts, const AttentionProblem& problem,
                    const AttentionTile& tile, const TileInstruction& by)
      : AttentionBlocks(b, parts, problem, tile), by_(by), keeps_(keeps_weights(by)) {
    depth_ = padded_depth(problem, &by_);
    columns_ = padded_columns(problem, tile, &by_);
    scores_ = instruction_deal(by_, tile.rows, tile.keys, tile.thread_rows);
    output_ = instruction_deal(by_, tile.rows, columns_, tile.thread_rows);
  }

 private:
  void key_products() override {
    apart(qt_, by_.left.digits[1]), apart(kt_, by_.right.digits[1]);
    const std::vector<Axis> t = threads("acc_first");
    b_.within(t, [&] { clear("acc_first", s_, scores_, variables(t)); });
    const Axis warp = warps("acc"), step{"acc_k", Expr(depth_ / by_.k), AxisRole::reduce};
    b_.within({warp}, [&] {
      b_.within({step}, [&] {
        const Expr depth = var(step.name) * Expr(by_.k);
        const BufferId q = queries_of(var(warp.name), depth);
        over_columns("acc", "kf", tile_.keys / by_.n, kt_, FragmentOf::turned_right, depth,
                     [&](const Part& k, const Expr& column) {
                       multiply(
                           "acc", s_, {var(warp.name), {}, column},
                           [&](const Expr& part) { return Part{q, {part}}; }, k);
                     });
      });
    });
  }

  void hand_over(const Index& thread) override {
    if (!keeps_) return through_memory(thread);
    const int64_t steps = tile_.keys / by_.k;
    const std::vector<PlacementDigit>&down = by_.left.digits[0], &along = by_.left.digits[1];
    const std::vector<Axis> r = unrolled(
                                axes_of("p_r", {tile_.thread_rows / by_.m, digit_elements(down)})),
                            c = unrolled(axes_of("p_c", {steps, digit_elements(along)}));
    const Expr row = digit_place(down, thread[1], var(r[1].name)),
               key = digit_place(along, thread[1], var(c[1].name));
    Shape shape = {Expr(scores_.threads[0]), r[0].extent, c[0].extent};
    for (const Expr& extent : by_.semantics->buffer(BufferId{0}).shape) shape.push_back(extent);
    weights_ = own("pf", problem_.type, shape);
    const Index to = joined({thread[0], var(r[0].name), var(c[0].name)},
                            placed(by_, 0, by_.row, row, by_.depth, key));
    const Expr column = var(c[0].name) * Expr(by_.k) + key;
    Index from = {thread[0], var(r[0].name), floor_div(column, Expr(by_.n))};
    from = joined(from, placed(by_, 2, by_.row, row, by_.column, floor_mod(column, Expr(by_.n))));
    b_.stage("p", joined(r, c), weights_, simplified(to),
             rounded_to(problem_.type, load(s_, DType::f32, simplified(from))));
  }
  void through_memory(const Index& thread) {
    weights_ = shared("pt", problem_.type, {Expr(tile_.rows), Expr(tile_.keys)});
    apart(weights_, by_.left.digits[1]);
    const std::vector<Axis> r = rows("p"), c = columns("p", scores_);
    b_.stage(
        "p", joined(r, c), weights_,
        simplified({scores_.row_at(thread, variables(r)), scores_.column_at(thread, variables(c))}),
        rounded_to(
            problem_.type,
            load(s_, DType::f32, simplified(scores_.place(thread, variables(r), variables(c))))));
  }

  void value_products() override {
    apart(vt_, by_.right.digits[0]);
    const Axis warp = warps("o"), step{"o_k", Expr(tile_.keys / by_.k), AxisRole::reduce};
    if (keeps_) m_.unrolled.push_back(step.loop());
    b_.within({warp}, [&] {
      b_.within({step}, [&] {
        const Expr depth = var(step.name) * Expr(by_.k);
        const BufferId p = keeps_ ? weights_
                                  : fragment("pf", weights_, FragmentOf::left, row_parts("pf"),
                                             var(warp.name) * Expr(tile_.thread_rows), depth);
        over_columns("o", "vf", columns_ / by_.n, vt_, FragmentOf::right, depth,
                     [&](const Part& v, const Expr& column) {
                       multiply(
                           "o", o_, {var(warp.name), {}, column},
                           [&](const Expr& part) {
                             return keeps_ ? Part{p, {var(warp.name), part, var(step.name)}}
                                           : Part{p, {part}};
                           },
                           v);
                     });
      });
    });
  }

  // An operand, with the leading indices of a thread's elements
  struct Part {
    BufferId buffer;
    Index first;
  };
  // Calls body for the columns of each instruction, with its right operand. The operand is loaded
  // there if threads load together, and otherwise for all columns in advance.
  void over_columns(const std::string& name, const std::string& operand_name, int64_t count,
                    BufferId tile, FragmentOf operand, const Expr& depth,
                    const std::function<void(const Part& right, const Expr& column)>& body) {
    const bool together = fragment_load(b_.target, by_, operand).has_value();
    const bool turned = operand == FragmentOf::turned_right;
    const auto load_from = [&](const std::vector<Axis>& parts, const Expr& first) {
      return fragment(operand_name, tile, operand, parts, turned ? first : depth,
                      turned ? depth : first);
    };
    BufferId all{};
    if (!together) all = load_from(unrolled({{operand_name + "_n", Expr(count)}}), Expr(0));
    const std::vector<Axis> columns = unrolled({{name + "_n", Expr(count)}});
    const Expr column = var(columns[0].name);
    b_.within(columns, [&] {
      if (together) body({load_from({}, column * Expr(by_.n)), {}}, column);
      else body({all, {column}}, column);
    });
  }
  Axis warps(const std::string& name) {
    const Axis axis{name + "_warp", Expr(scores_.threads[0])};
    b_.declare({axis});
    m_.threads.push_back({axis.loop(), Loop()});
    return axis;
  }
  // Loop over the instructions that are above each other in a warp's rows
  std::vector<Axis> row_parts(const std::string& name) {
    return unrolled({{name + "_m", Expr(tile_.thread_rows / by_.m)}});
  }
  BufferId queries_of(const Expr& warp, const Expr& depth) {
    return fragment("qf", qt_, FragmentOf::left, row_parts("qf"), warp * Expr(tile_.thread_rows),
                    depth);
  }

  void apart(BufferId tile, const std::vector<PlacementDigit>& digits) {
    int64_t elements = std::max<int64_t>(1, b_.target.lanes(dtype_bytes(problem_.type)));
    for (const PlacementDigit& digit : digits)
      if (digit.thread != 0) elements = std::max(elements, digit.stride * digit.extent);
    keep_apart(tile, elements);
  }

  // Loads each thread's elements of an operand from a tile in the shared memory, starting at a row
  // and a column. `parts` is a loop over several instructions; empty: one instruction.
  BufferId fragment(const std::string& name, BufferId from, FragmentOf operand,
                    const std::vector<Axis>& parts, const Expr& first_row,
                    const Expr& first_column) {
    const bool left = operand == FragmentOf::left;
    const int32_t parameter = left ? 0 : 1;
    Shape shape = extents(parts);
    for (const Expr& extent : by_.semantics->buffer(BufferId{parameter}).shape)
      shape.push_back(extent);
    const BufferId to = own(name, problem_.type, shape);
    const Expr skipped = parts.empty() ? Expr(0) : var(parts[0].name) * Expr(left ? by_.m : by_.n);
    // Several instructions are beside each other, otherwise above each other
    const bool beside = operand == FragmentOf::right;
    const auto at = [&](const Expr& row, const Expr& column) {
      if (left) return placed(by_, 0, by_.row, row, by_.depth, column);
      const bool turned = operand == FragmentOf::turned_right;
      return placed(by_, 1, by_.column, turned ? row : column, by_.depth, turned ? column : row);
    };
    std::vector<Axis> axes, all;
    Expr row, column;
    if (const auto by = fragment_load(b_.target, by_, operand)) {
      axes = axes_of(name + "_l", {by->matrices, by->rows, by->columns});
      m_.instructions.push_back({axes[0].loop(), by->intrinsic->name, name + "_load"});
      row = floor_mod(var(axes[0].name), Expr(by->below)) * Expr(by->rows) + var(axes[1].name);
      column = floor_div(var(axes[0].name), Expr(by->below)) * Expr(by->columns) +
               var(axes[2].name);
      all = joined(parts, axes);
    } else {
      const OperandPlacement& placement = left ? by_.left : by_.right;
      const std::vector<PlacementDigit>&first = placement.digits[0], &second = placement.digits[1];
      axes = axes_of(name + "_l", {by_.together, digit_elements(first), digit_elements(second)});
      m_.threads.push_back({Loop(), axes[0].loop()});
      m_.unrolled.insert(m_.unrolled.end(), {axes[1].loop(), axes[2].loop()});
      row = digit_place(first, var(axes[0].name), var(axes[1].name));
      column = digit_place(second, var(axes[0].name), var(axes[2].name));
      if (beside) std::swap(row, column);
      all = joined(joined({axes[0]}, parts), {axes[1], axes[2]});
    }
    b_.declare(axes);
    b_.stage(name, all, to, simplified(joined(variables(parts), at(row, column))),
             load(from, problem_.type,
                  {b_.simplified(first_row + row + (beside ? Expr(0) : skipped)),
                   b_.simplified(first_column + column + (beside ? skipped : Expr(0)))}));
    return to;
  }

  // place: index of the sums; the number of the instruction in the column of instructions goes in
  // its middle
  void multiply(const std::string& name, BufferId sums, const Index& place,
                const std::function<Part(const Expr&)>& left, const Part& right) {
    const std::vector<Axis> parts = row_parts(name);
    const std::vector<Axis> axes = {{name + "_i", Expr(by_.m)},
                                    {name + "_j", Expr(by_.n)},
                                    {name + "_e", Expr(by_.k), AxisRole::reduce}};
    b_.declare(axes);
    const Expr i = var(axes[0].name), j = var(axes[1].name), e = var(axes[2].name);
    const auto number = [&](const Part& part, const Index& at) {
      const Expr value = load(part.buffer, problem_.type, joined(part.first, at));
      return problem_.tf32 ? unary(UnaryOp::tf32, value) : in_f32(value);
    };
    m_.instructions.push_back({axes[0].loop(), by_.intrinsic->name, name + "_product"});
    b_.stage(name, joined(parts, axes), sums,
             simplified(joined({place[0], var(parts[0].name), place[2]},
                               placed(by_, 2, by_.row, i, by_.column, j))),
             number(left(var(parts[0].name)), placed(by_, 0, by_.row, i, by_.depth, e)) *
                 number(right, placed(by_, 1, by_.column, j, by_.depth, e)),
             Combiner::add);
  }

  TileInstruction by_;
  bool keeps_;
  BufferId weights_{};
};

}  // namespace

int64_t value_vector(const AttentionProblem& problem, const AttentionTile& tile) {
  for (const int64_t vector : {kVector, kVector / 2})
    if (problem.columns >= tile.across * vector) return vector;
  return 1;
}

int64_t padded_depth(const AttentionProblem& problem, const TileInstruction* by) {
  return in_whole(problem.depth, by ? by->k : kVector);
}

int64_t padded_columns(const AttentionProblem& problem, const AttentionTile& tile,
                       const TileInstruction* by) {
  return in_whole(problem.columns, by ? by->n : tile.across * value_vector(problem, tile));
}

bool keeps_weights(const TileInstruction& by) {
  for (int64_t lane = 0; lane < by.together; ++lane)
    for (int64_t a = 0; a < digit_elements(by.left.digits[0]); ++a)
      for (int64_t b = 0; b < digit_elements(by.left.digits[1]); ++b) {
        const Expr row = digit_place(by.left.digits[0], Expr(lane), Expr(a)),
                   key = digit_place(by.left.digits[1], Expr(lane), Expr(b));
        const Index at = placed(by, 2, by.row, row, by.column, floor_mod(key, Expr(by.n)));
        if (!is_const(simplify(at[0]), lane)) return false;
      }
  return true;
}

namespace {

struct BlockAttention {
  AttentionParts parts;
  AttentionProblem problem;
  std::vector<AttentionTile> tiles;  // the default one first
};

std::optional<BlockAttention> block_attention(const TargetBuilder& b, const Node& product) {
  const AttentionParts parts = attention_parts(b, product);
  const auto problem = attention_problem(b.graph, *parts.scores, *parts.product,
                                         [&](ValueId v) { return b.inside(v); });
  if (!problem) return std::nullopt;
  std::vector<AttentionTile> tiles = attention_tiles(b.target, *problem);
  if (tiles.empty()) return std::nullopt;
  return BlockAttention{parts, *problem, std::move(tiles)};
}

Lowered<AttentionBlockStages> lower_in(TargetBuilder& b, const BlockAttention& attention,
                                       const AttentionTile& tile) {
  const auto by = attention_instruction(b.target, attention.problem);
  if (tile.by_instruction)
    return InstructionBlocks(b, attention.parts, attention.problem, tile, *by).run();
  return ScalarBlocks(b, attention.parts, attention.problem, tile).run();
}

}  // namespace

std::optional<Lowered<AttentionBlockStages>> lower_attention_in_blocks(TargetBuilder& b,
                                                                       const Node& product) {
  const auto attention = block_attention(b, product);
  if (!attention) return std::nullopt;
  return lower_in(b, *attention, attention->tiles.front());
}

std::vector<Lowered<AttentionBlockStages>> attention_in_other_tiles(const Graph& graph,
                                                                    const Group& group,
                                                                    const Target& device) {
  constexpr size_t kMostTiles = 12;
  const Node& product = graph.node(group.anchor);
  const bool attends = std::ranges::any_of(
      group.nodes, [&](NodeId id) { return get_if<op::Softmax>(&graph.node(id)) != nullptr; });
  std::vector<Lowered<AttentionBlockStages>> all;
  if (device.axes.empty() || !attends || !get_if<op::MatMul>(&product)) return all;
  const auto attention = block_attention(TargetBuilder(graph, group, device), product);
  if (!attention) return all;
  for (size_t i = 1; i < attention->tiles.size() && all.size() < kMostTiles; ++i) {
    TargetBuilder b(graph, group, device);
    all.push_back(lower_in(b, *attention, attention->tiles[i]));
  }
  return all;
}

}  // namespace tw
