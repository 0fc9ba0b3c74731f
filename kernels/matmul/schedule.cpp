// Matrix products: MR rows times one packed panel in registers over the whole depth, panels
// outermost (their weights stay in cache while the rows pass). The tile:
// kernels/common/register_tile.h.
#include "kernels/common/register_tile.h"
#include "kernels/matmul/matmul.h"
#include "kernels/schedule/builder.h"

namespace tw {
namespace {

// The output's columns in panels and, in them, vectors of lanes.
struct Columns {
  Loop panels, vectors, lane;
};

class MatMulSchedule {
 public:
  MatMulSchedule(ScheduleBuilder& s, const MatMulStages& m)
      : s_(s),
        m_(m),
        paired_(m.paired.defined()),
        lanes_(s.target().lanes(element_bytes())),
        vectors_(std::max<int64_t>(1, m.panel / lanes_)) {}

  void run() {
    s_.map_nests(m_.copies);
    const int64_t rows = tile_rows_of();
    const Columns columns = cut_columns();
    // The sums of a symbolic number of rows, or of rows that fill no instruction, come in whole
    // tiles; the tail is a branch a row of the output only.
    ScheduleBuilder::Cut row{m_.y.row, {}};
    const auto all = s_.extent(m_.y.row);
    const bool whole = all && all == s_.extent(m_.acc_row);
    if (rows > 1) row = s_.split(m_.y.row, rows, whole ? Tail::shift : Tail::guard, "i0", "i1");
    Loops outer = m_.y.batches;
    // Panels pass each block of rows
    const bool rows_outside = s_.choose_switch("rows_outside", false);
    outer.push_back(rows_outside ? row.outer : columns.panels);
    outer.push_back(rows_outside ? columns.panels : row.outer);
    Loops order = outer;
    order.insert(order.end(), {row.inner, columns.vectors, columns.lane});
    s_.reorder(order);
    const Loop depth = paired_ ? sum_pairs(outer.back()) : sum(outer.back());
    // A single row leaves no time for it: it waits for the weights anyway
    if (rows > 1) s_.prefetch_panels(m_.weights, depth, paired_);
    s_.unroll(row.inner);
    s_.unroll(columns.vectors);
    s_.vectorize(columns.lane);
    s_.parallelize(outer, "yp");
  }

 private:
  int64_t element_bytes() const { return dtype_bytes(s_.buffer(m_.acc.buffer()).dtype); }

  // Distance in memory of the left operand's rows: the depth, where it is a plain matrix.
  std::optional<int64_t> row_bytes() const {
    const auto depth = m_.depth.size() == 1 ? s_.extent(m_.depth[0]) : std::nullopt;
    return depth ? std::optional(*depth * element_bytes()) : std::nullopt;
  }

  // Of the register tile.
  int64_t tile_rows_of() const {
    constexpr int64_t kMostTile = 64;  // vectors, without rules
    const std::optional<int64_t> all = s_.extent(m_.y.row), bytes = row_bytes();
    const int64_t wide = paired_ ? kPairedVectors : vectors_;
    const int64_t most = all.value_or(s_.target().vector_registers);
    std::vector<int64_t> others;
    const int64_t block = m_.instruction.rows;  // whole ones, and no tile of fewer rows
    const std::optional<int64_t> sums = s_.extent(m_.acc_row);
    const auto fits = [&](int64_t rows) {
      return block == 1 || (rows % block == 0 && *sums % rows == 0);
    };
    for (int64_t rows = 1; s_.open() && rows <= most; ++rows) {
      if (!fits(rows)) continue;
      const bool strided = bytes && *bytes % kSetBytes == 0 && rows > kSetWays;
      if (s_.rules() ? fits_registers(s_.target(), {rows, wide}) && !strided
                     : rows * wide <= kMostTile)
        others.push_back(rows);
    }
    const int64_t usual = paired_     ? paired_rows(s_.target(), all)
                          : block > 1 ? tile_rows(s_.target(), vectors_, all, {}, block)
                                      : tile_rows(s_.target(), vectors_, all, bytes);
    return s_.choose("rows", usual, others);
  }

  // One column alone is not cut: its lanes would all store to one place.
  Columns cut_columns() {
    const Loop column = m_.y.column;
    const bool one = s_.extent(column) == 1;
    const int64_t lane = std::min(m_.panel, lanes_);
    if (one) return {column, {}, {}};
    const auto [panels, within] = s_.split(column, m_.panel, Tail::guard, "j0", "j1");
    if (m_.panel <= lane) return {panels, {}, within};
    const auto [vectors, inner] = s_.split(within, lane, Tail::guard, "jv", "jl");
    return {panels, vectors, inner};
  }

  // The sums below loop `at`, a step of the depth at a time. The result: the loop of such steps.
  Loop sum(const Loop& at) {
    s_.compute_at(m_.acc, at);
    ScheduleBuilder::Cut columns{{}, s_.moved(m_.acc, m_.acc_column)};
    if (m_.panel > lanes_)
      columns = s_.split(columns.inner, lanes_, Tail::guard, "acc_jv", "acc_jl");
    const Loop row = s_.moved(m_.acc, m_.acc_row);
    SumInstruction instruction = m_.instruction;
    Loops tile = {row, columns.outer};
    if (instruction.rows > 1) instruction.row = row, tile = {columns.outer};
    s_.accumulate(m_.acc, m_.depth, tile, columns.inner, instruction);
    s_.set_scope(m_.acc, "register");
    const bool in_blocks = m_.depth.size() == 3;  // of small integers
    if (in_blocks) s_.unroll(m_.depth[2]);
    return s_.unroll_part(in_blocks ? m_.depth[1] : m_.depth[0]);
  }

  Loop sum_pairs(const Loop& at) {
    const PairedSteps steps = accumulate_pairs(
        s_, {m_.acc, m_.paired, m_.depth, {}, {m_.acc_row}, m_.acc_column}, at);
    s_.unroll(steps.straight);
    return steps.rolled.empty() ? Loop() : steps.rolled.back();
  }

  ScheduleBuilder& s_;
  const MatMulStages& m_;
  bool paired_;
  int64_t lanes_, vectors_;
};

}  // namespace

void schedule_matmul(ScheduleBuilder& s, const MatMulStages& m) { MatMulSchedule(s, m).run(); }

}  // namespace tw
