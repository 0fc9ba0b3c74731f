// Schedules attention for a device whose blocks of threads share a memory
// (kernels/device/attention.h). A block's threads copy its queries, and each step's keys and
// values, into that memory. The scores, the sums, and what is known of a row stay in registers of
// the threads to which the digits of rows, keys and columns give them (kernels/device/deal.h).
// Threads that share a row combine their parts of it through the memory.
//
// Single threads read vectors of four. For an instruction, the threads of a warp load its operands
// together. Where the thread that has a weight also multiplies it, as with f16, weights stay in
// registers. Otherwise they pass through the memory.
#include <algorithm>

#include "ir/simplify.h"
#include "kernels/device/attention.h"
#include "kernels/device/deal.h"
#include "kernels/schedule/operands.h"

namespace tw {
namespace {

constexpr int64_t kThreadDepth = 4;  // steps of a product that a thread makes at once

class BlockedAttention {
 public:
  BlockedAttention(ScheduleBuilder& s, const StreamingAttentionStages& m)
      : s_(s),
        m_(m),
        target_(s.target()),
        memory_(block_memory(s.target())->name),
        of_scores_(m.of_scores) {
    for (const DeviceAxis& axis : target_.axes) {
      if (axis.level == "block" && block_.empty()) block_ = axis.name;
      if (axis.level == "thread") axes_.push_back(axis.name);
    }
    by_ = attention_instruction(target_, m.problem);
    choose();
    if (!s_.sound()) return;
    if (by_) deal_by_instruction();
    else deal_to_single_threads();
    parts_ = parts_of(keys_);
  }

  void run() {
    if (!s_.sound()) return;
    pack_operands();
    combine_parts();
    if (!s_.sound()) return;
    place();
    if (by_) multiply_together();
    else multiply_alone();
    deal_nests();
    if (!s_.sound()) return;
    for (const Operand& operand : {queries_, step_keys_, values_}) copy_to_memory(operand);
    // Bound last, because every later step must obey the rules of concurrent loops.
    s_.bind(s_.fuse(m_.blocks, "block"), block_);
    for (const Threads& threads : threads_of_nests_) {
      s_.bind(threads.lanes, axes_[0]);
      if (threads.groups.defined()) s_.bind(threads.groups, axes_[1]);
    }
  }

 private:
  using Part = StreamingAttentionStages::Part;
  using Product = StreamingAttentionStages::Product;
  using Dims = std::vector<ScheduleBuilder::PackedDim>;

  // The best tile with the kernel's rows and keys, or another way to deal it out
  void choose() {
    const std::vector<AttentionTile> all = attention_tiles(target_, m_.problem);
    const auto usual = std::ranges::find_if(all, [&](const AttentionTile& tile) {
      return tile.rows == m_.rows && tile.keys == m_.keys;
    });
    if (usual == all.end()) return s_.fail("the scores of a step fit the device in no way");
    tile_ = *usual;
    if (by_) return;
    tile_.thread_rows = s_.choose("thread_rows", usual->thread_rows, {1, 2, 4});
    tile_.across = s_.choose("across", usual->across, {8, 16, 32});
    if (std::ranges::find(all, tile_) == all.end())
      s_.fail("the scores of a step do not fit the device when dealt out so");
  }

  void deal_by_instruction() {
    const TileInstruction& by = *by_;
    together_ = by.together, threads_ = m_.rows / by.m * together_;
    width_ = padded_columns(m_.problem, tile_, &by);
    rows_ = in_groups(by.sums.digits[0], m_.rows / by.m, together_);
    keys_ = in_groups(by.sums.digits[1], m_.keys / by.n, 0);
    columns_ = in_groups(by.sums.digits[1], width_ / by.n, 0);
    keeps_ = keeps_weights(by);
  }

  // The rows of a thread are apart. Its columns lie in vectors, and those of all threads of a row
  // are adjacent.
  void deal_to_single_threads() {
    const int64_t across = tile_.across, apart = m_.rows / tile_.thread_rows,
                  vector = value_vector(m_.problem, tile_);
    together_ = threads_ = apart * across;
    width_ = padded_columns(m_.problem, tile_, nullptr);
    rows_ = in_groups({{1, apart, across}}, tile_.thread_rows, 0);
    keys_ = in_groups({{1, across, 1}}, m_.keys / across, 0);
    columns_ = in_groups({{1, vector, 0}, {vector, across, 1}}, width_ / (across * vector), 0);
  }

  // An operand in the block's memory. Its copy has loops over rows and over elements of a row.
  // Digits have a dimension each, the highest first; without digits, there is one.
  struct Operand {
    Stage stage;
    Loops rows, elements;
    Digits row_digits, element_digits;
  };
  // A loop as dimensions of an operand. A thread's elements must be adjacent, so digits are apart.
  static Dims dims_of(const Loop& loop, const Digits& digits, const std::string& name) {
    Dims dims;
    Expr rest = variable(loop);
    for (size_t d = 0; d + 1 < digits.size(); ++d) {
      dims.push_back({floor_mod(rest, Expr(digits[d].extent)), name + std::to_string(d)});
      rest = floor_div(rest, Expr(digits[d].extent));
    }
    dims.push_back({rest, name});
    std::ranges::reverse(dims);
    return dims;
  }
  Operand packed(const Stage& stage, Factor factor, const std::string& name, const Dims& rows,
                 const Dims& elements) {
    Dims all = rows;
    all.insert(all.end(), elements.begin(), elements.end());
    const auto made = s_.pack(stage, factor, name, memory_, all);
    const auto end = made.loops.begin() + static_cast<ptrdiff_t>(rows.size());
    return {made.stage, Loops(made.loops.begin(), end), Loops(end, made.loops.end()), {}, {}};
  }

  // Lays the operands out in whole instructions or vectors, and lets the products cover these.
  void pack_operands() {
    const Product &scores = m_.key_products, &output = m_.value_products;
    const int64_t depth = by_ ? by_->k : kThreadDepth,
                  columns = by_ ? by_->n : tile_.across * value_vector(m_.problem, tile_);
    const auto steps = [&](const char* name) {
      return Dims{{filled_up(variable(scores.depth), depth), name}};
    };
    const Digits no, &rows = by_ ? no : rows_, &keys = by_ ? no : keys_;
    queries_ = packed(scores.stage, Factor::left, "qt", dims_of(scores.row, rows, "qi"),
                      steps("qk"));
    step_keys_ = packed(scores.stage, Factor::right, "kt", dims_of(scores.column, keys, "kj"),
                        steps("kk"));
    weights_ = packed(output.stage, Factor::left, "pt", dims_of(output.row, rows, "pi"),
                      {{variable(output.depth), "pj"}});
    values_ = packed(output.stage, Factor::right, "vt", {{variable(output.depth), "vj"}},
                     by_ ? Dims{{filled_up(variable(output.column), columns), "ve"}}
                         : dims_of(output.column, columns_, "ve"));
    queries_.row_digits = weights_.row_digits = rows, step_keys_.row_digits = keys;
    if (!by_) values_.element_digits = columns_;
    s_.hoist(values_.stage, step_keys_.stage);  // one wait for both
    s_.pad_zeros(scores.depth, depth);
    Loops over_columns = {output.column};
    for (const Part& part : m_.of_output) over_columns.push_back(part.column);
    s_.pad(over_columns, columns);
    s_.pad(m_.y.column, columns);
    s_.decompose(scores.stage, scores.row);
    of_scores_.push_back(
        {s_.init_of(scores.stage), s_.init_of(scores.row), s_.init_of(scores.column)});
  }

  // Lets each thread combine its part of a row. The parts of the largest score pass through the
  // block's memory in each step, those of the sum at the end. All threads of a row keep its state.
  void combine_parts() {
    Loops own;  // loops over what one thread combines
    const auto part_of = [&](const Part& fold) {
      const DealtLoop dealt = deal_loop(s_, fold.column, keys_);
      Loops order, parts;
      for (const auto& [amount, loop] : dealt.threads) parts.push_back(loop);
      order = parts;
      order.insert(order.end(), dealt.elements.begin(), dealt.elements.end());
      s_.reorder(order);
      own.insert(own.end(), dealt.elements.begin(), dealt.elements.end());
      return s_.fuse(parts, fold.column.name() + "_part");
    };
    const Loop of_top = part_of(m_.top), of_sum = part_of(m_.sum);
    const Stage most = s_.rfactor(m_.top.stage, of_top, "most");
    const Loops most_loops = {m_.top.row, of_top}, sum_loops = {m_.sum.row, of_sum};
    const Stage own_most = s_.cache_write(most, "own_most", "stack");
    s_.set_scope(most, memory_);
    const Stage sums = s_.rfactor(m_.sum.stage, of_sum, "own_sum");
    s_.replicate(m_.row_state, digit_threads(keys_), [&](const Stage& reader) {
      for (const Part& part : m_.of_scores)
        if (part.stage == reader) return part_at(keys_, variable(part.column));
      for (const Part& part : joined(m_.of_output, m_.y))
        if (part.stage == reader) return part_at(columns_, variable(part.column));
      return variable(s_.moved(reader, of_sum));
    });
    const Stage shown = s_.cache_read(sums.buffer(), m_.sum.stage, "part", memory_);
    if (!s_.sound()) return;
    const auto copies_of = [&](const Part& fold, const Loop& part) {
      const Loops loops = s_.cached(fold.stage, {fold.row, part});
      s_.unroll(loops[1]);
      return Loops{loops[0], s_.replica_of(fold.stage)};
    };
    s_.unroll(own);
    deal(own_most, most_loops, rows_, parts_);
    deal(most, s_.cached(most, most_loops), rows_, parts_);
    deal(m_.top.stage, copies_of(m_.top, of_top), rows_, parts_);
    deal(sums, sum_loops, rows_, parts_);
    const Loops shown_loops = s_.loops_of(shown);
    deal(shown, Loops(shown_loops.end() - 2, shown_loops.end()), rows_, parts_);
    deal(m_.sum.stage, copies_of(m_.sum, of_sum), rows_, parts_);
    for (const Part& part : m_.of_rows) {
      const Loop copy = s_.replica_of(part.stage);
      deal(part.stage, {part.row, s_.has(copy) ? copy : s_.moved(part.stage, of_sum)}, rows_,
           parts_);
    }
    own_state_ = m_.row_state;
    own_state_.insert(own_state_.end(), {own_most.buffer(), sums.buffer()});
  }
  static std::vector<Part> joined(std::vector<Part> parts, const Part& last) {
    parts.push_back(last);
    return parts;
  }

  // A thread's elements of an operand: qf, kf, pf, vf
  Stage loaded(const Operand& operand, const Product& product) {
    const std::string name = operand.stage.label().substr(0, 1) + "f";
    return s_.cache_read(operand.stage.buffer(), product.stage, name, "stack");
  }

  // Both products by single threads, which load vectors of both operands.
  void multiply_alone() {
    multiply_alone(m_.key_products, queries_, step_keys_, keys_, true);
    multiply_alone(m_.value_products, weights_, values_, columns_, columns_.front().thread == 0);
  }
  void multiply_alone(const Product& p, const Operand& left, const Operand& right,
                      const Digits& digits, bool vectors) {
    const std::string& name = p.stage.label();
    const Stage lefts = loaded(left, p), rights = loaded(right, p);
    const std::vector<DealtLoop> dealt = {deal_loop(s_, p.row, rows_),
                                          deal_loop(s_, p.column, digits)};
    const auto depth = s_.split(p.depth, kThreadDepth, Tail::guard, name + "_steps",
                                name + "_step");
    Loops order, elements;
    for (const DealtLoop& one : dealt) {
      for (const auto& [amount, loop] : one.threads) order.push_back(loop);
      elements.insert(elements.end(), one.elements.begin(), one.elements.end());
    }
    order.insert(order.end(), {depth.outer, depth.inner});
    order.insert(order.end(), elements.begin(), elements.end());
    s_.reorder(order);
    s_.unroll(depth.inner);
    s_.unroll(elements);
    for (const Stage& operand : {lefts, rights}) {
      s_.compute_at(operand, depth.outer);
      Loops loops = s_.loops_inside(operand, depth.outer);
      if (!s_.sound()) return;
      if (operand == lefts || vectors) s_.vectorize(loops.back()), loops.pop_back();
      s_.unroll(loops);
    }
    threads_of_nests_.push_back(join_threads(s_, dealt, together_, name));
  }

  // Both products by the instruction
  void multiply_together() {
    multiply_together(m_.key_products, queries_, step_keys_, FragmentOf::turned_right, false);
    multiply_together(m_.value_products, weights_, values_, FragmentOf::right, keeps_);
  }
  void multiply_together(const Product& p, const Operand& left, const Operand& right,
                         FragmentOf right_is, bool has_left) {
    const TileInstruction& by = *by_;
    const std::string& name = p.stage.label();
    Stage lefts;
    if (!has_left) lefts = loaded(left, p);
    const Stage rights = loaded(right, p);
    const auto row = s_.split(p.row, by.m, Tail::guard, name + "_warp", name + "_r"),
               column = s_.split(p.column, by.n, Tail::guard, name + "_n", name + "_c"),
               depth = s_.split(p.depth, by.k, Tail::guard, name + "_steps", name + "_step");
    s_.reorder({row.outer, depth.outer, column.outer, row.inner, column.inner, depth.inner});
    const bool together = fragment_load(target_, by, right_is).has_value();
    if (!has_left) load(lefts, depth.outer, FragmentOf::left);
    load(rights, together ? column.outer : depth.outer, right_is);
    s_.tensorize(row.inner, by.intrinsic->name, name + "_product");
    s_.unroll(column.outer);
    if (has_left) s_.unroll(depth.outer);
    threads_of_nests_.push_back({row.outer, {}});
  }
  void load(const Stage& operand, const Loop& at, FragmentOf which) {
    s_.compute_at(operand, at);
    place_operand(s_, *by_, operand, which);
    threads_of_nests_.push_back({{}, load_operand(s_, *by_, operand, at, which)});
  }

  // Puts elements where their threads have them.
  void place() {
    for (const auto& [part, digits] :
         {std::pair(&m_.key_products, &keys_), std::pair(&m_.value_products, &columns_)})
      s_.layout(part->stage.buffer(), [&](const std::vector<Expr>& d) {
        if (by_) return placed_by(2, d[0], Expr(by_->m), d[1], Expr(by_->n));
        return std::vector<Expr>{thread_at(rows_, d[0]) + thread_at(*digits, d[1]),
                                 element_at(rows_, d[0]), element_at(*digits, d[1])};
      });
    if (keeps_)
      s_.layout(weights_.stage.buffer(), [&](const std::vector<Expr>& d) {
        return placed_by(0, d[0], Expr(by_->m), d[1], Expr(by_->k));
      });
    for (const BufferName& buffer : own_state_) {
      s_.layout(buffer, [&](const std::vector<Expr>& d) {
        const Expr thread = thread_at(rows_, d[0]) + thread_at(parts_, d[1]),
                   element = element_at(rows_, d[0]);
        if (!by_) return std::vector<Expr>{thread, element};
        return std::vector<Expr>{floor_div(thread, Expr(together_)),
                                 floor_mod(thread, Expr(together_)), element};
      });
      s_.set_scope(buffer, "stack");
    }
    for (const Product& product : {m_.key_products, m_.value_products})
      s_.set_scope(product.stage, "stack");
  }
  std::vector<Expr> placed_by(int32_t parameter, const Expr& first, const Expr& m,
                              const Expr& second, const Expr& n) const {
    std::vector<Expr> at = {floor_div(first, m), floor_div(second, n)};
    const auto within = placed(*by_, parameter, floor_mod(first, m), floor_mod(second, n));
    at.insert(at.end(), within.begin(), within.end());
    return at;
  }

  void deal(const Stage& stage, const Loops& loops, const Digits& rows, const Digits& columns,
            bool vector = false) {
    threads_of_nests_.push_back(
        deal_nest(s_, loops, {rows, columns}, together_, stage.label(), {}, vector));
  }

  void deal_nests() {
    for (const Part& part : of_scores_) deal(part.stage, {part.row, part.column}, rows_, keys_);
    for (const Part& part : m_.of_output)
      deal(part.stage, {part.row, part.column}, rows_, columns_);
    deal(m_.y.stage, {m_.y.row, m_.y.column}, rows_, columns_,
         m_.problem.columns % columns_.front().extent == 0);
    joined_digits(weights_);
    const Loops weights = {s_.fuse(weights_.rows, "pt_row"), weights_.elements.front()};
    if (keeps_) {
      const std::array<Digits, 2>& digits = by_->left.digits;
      deal(weights_.stage, weights, in_groups(digits[0], m_.rows / by_->m, together_),
           in_groups(digits[1], m_.keys / by_->k, 0));
      s_.set_scope(weights_.stage, "stack");
    } else {
      deal(weights_.stage, weights, rows_, keys_);
      keep_rows_apart(s_, weights_.stage.buffer(), by_ ? by_->left.digits[1] : keys_);
    }
  }

  // Makes one dimension of an operand's rows, and one of their elements.
  void joined_digits(const Operand& operand) {
    if (operand.row_digits.size() < 2 && operand.element_digits.size() < 2) return;
    s_.layout(operand.stage.buffer(), [&](const std::vector<Expr>& d) {
      size_t at = 0;
      const auto join = [&](const Digits& digits) {
        Expr place = d[at++];
        for (size_t i = digits.size(); i-- > 1;)
          place = place * Expr(digits[i - 1].extent) + d[at++];
        return place;
      };
      const Expr row = join(operand.row_digits);
      return std::vector<Expr>{row, join(operand.element_digits)};
    });
  }

  // Lets all threads copy an operand into the block's memory.
  void copy_to_memory(const Operand& operand) {
    const std::string& name = operand.stage.label();
    joined_digits(operand);
    const bool values = name == values_.stage.label();
    if (by_) {
      const auto& digits = name == queries_.stage.label() ? by_->left.digits : by_->right.digits;
      keep_rows_apart(s_, operand.stage.buffer(), digits[values ? 0 : 1]);
    } else if (!values) {
      keep_rows_apart(s_, operand.stage.buffer(), {});
    }
    const DType type = s_.buffer(operand.stage.buffer()).dtype;
    const Loops loops = {s_.fuse(operand.rows, name + "_row"),
                         s_.fuse(operand.elements, name + "_element")};
    const CopyDeal deal{threads_, target_.lanes(dtype_bytes(type)), kCopiesAtOnce};
    const Loop thread = deal_copies(s_, operand.stage, loops, deal).thread;
    threads_of_nests_.push_back(by_ ? in_groups_of(s_, thread, together_) : Threads{{}, thread});
  }

  ScheduleBuilder& s_;
  const StreamingAttentionStages& m_;
  const Target& target_;
  std::string block_, memory_;
  std::vector<std::string> axes_;
  std::optional<TileInstruction> by_;
  bool keeps_ = false;  // weights stay in registers
  AttentionTile tile_;
  int64_t together_ = 1, threads_ = 1,
          width_ = 1;  // threads of a group and a block; padded columns
  // Places of rows, of a step's keys, of columns, and of the threads of a row
  Digits rows_, keys_, columns_, parts_;
  Operand queries_, step_keys_, weights_, values_;
  std::vector<Part> of_scores_;        // stages over the scores but their sums
  std::vector<BufferName> own_state_;  // buffers of a row, in registers
  std::vector<Threads> threads_of_nests_;
};

}  // namespace

void schedule_attention_in_blocks(ScheduleBuilder& s, const StreamingAttentionStages& m) {
  BlockedAttention(s, m).run();
}

}  // namespace tw
