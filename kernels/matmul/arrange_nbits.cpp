// Arranges the operands of a product with a matrix of small integers, which stays in memory as it
// is. Its bytes lie in panels [N/P][blocks][steps of some bytes][P][bytes of a step], with scales
// and zeros [N/P][blocks][P] beside them. Columns behind the last one repeat it. A free number of
// rows is summed in whole register tiles. Rows behind the last one repeat it.
//
// For float rows a step is one byte, and the kernel extracts numbers from the bytes while it
// multiplies. For byte rows a step is the bytes that an instruction of the target takes at once.
// Their numbers are extracted first (codes), those at the same place in their bytes together. The
// rows are rounded into that order, [row, block, place in a byte, byte]. Without an instruction,
// floats hold the rounded rows and the sums of blocks, where these are small enough.
#include <algorithm>

#include "kernels/common/integer_product.h"
#include "kernels/common/register_tile.h"
#include "kernels/matmul/matmul.h"
#include "kernels/schedule/operands.h"

namespace tw {
namespace {

class NBitsArrangement {
 public:
  NBitsArrangement(ScheduleBuilder& s, MatMulStages& m)
      : s_(s),
        m_(m),
        blocks_(m.blocks),
        type_(s.buffer(m.acc.buffer()).dtype),
        lanes_(std::max(1, s.target().lanes(dtype_bytes(type_)))),
        in_byte_(*s.extent(m.blocks.in_byte)),
        bytes_(*s.extent(m.blocks.step)),
        tile_(product_tile(s.target(), lanes_, s.extent(m.acc_row), s.extent(m.acc_column),
                           row_bytes())) {
    m_.panel = tile_.vectors * lanes_;
    if (blocks_.rounded.defined()) choose_instruction();
  }

  void run() {
    m_.weights = in_panels(blocks_.sums, m_.weights, "w", product_.depth);
    in_panels(m_.acc, blocks_.zeros, "wz", 1);
    in_panels(m_.acc, blocks_.scales, "ws", 1);
    if (blocks_.rounded.defined()) order_rounded_rows();
    of_rows(blocks_.row_sums).along = s_.fuse(s_.reduce_loops_of(blocks_.row_sums), "xsk");
    fill_tiles(blocks_.row, blocks_.column);
    fill_tiles(m_.acc_row, m_.acc_column);
    if (product_.defined()) extract_numbers();
    else if (blocks_.rounded.defined()) sum_floats();
  }

 private:
  // Distance of the left operand's rows in memory
  std::optional<int64_t> row_bytes() const {
    const std::optional<int64_t> depth = as_const(blocks_.depth);
    return depth ? std::optional(*depth * dtype_bytes(type_)) : std::nullopt;
  }

  // Chooses an instruction whose right operand holds the numbers' range, signed or unsigned.
  void choose_instruction() {
    const ProductExtents extents{lanes_, bytes_, 1};
    for (const DType numbers : {DType::u8, DType::i8}) {
      if (numbers == DType::i8 && in_byte_ == 1) continue;
      const IntegerProduct found = integer_product(s_.target(), {DType::i8, 0}, numbers, extents);
      if (found.depth > product_.depth) product_ = found, numbers_type_ = numbers;
    }
  }

  // Lets the stage read a copy of the parameter [column, block] or [column, block, byte], which
  // has the columns in panels and the bytes in steps. Returns the copy's buffer.
  BufferName in_panels(const Stage& stage, const BufferName& parameter, const std::string& name,
                       int64_t step) {
    if (!s_.reads(s_.store_of(stage)->value, parameter)) return parameter;
    const bool constant = s_.buffer(parameter).role == BufferRole::constant;
    const Stage copy = s_.cache_read(parameter, stage, name, constant ? kConstantScope : "global");
    const Loops loops = s_.loops_of(copy);
    s_.pad(loops[0], m_.panel);
    const Expr column = var("c"), panel(m_.panel), byte = var("b"), together(step);
    std::vector<std::string> dims = {"c", "g"};
    std::vector<Expr> places = {floor_div(column, panel), var("g")};
    if (loops.size() > 2) {
      dims.push_back("b");
      places.push_back(step > 1 ? floor_div(byte, together) : byte);
    }
    places.push_back(floor_mod(column, panel));
    if (step > 1) places.push_back(floor_mod(byte, together));
    s_.layout(copy.buffer(), dims, places);
    const auto columns = s_.split(loops[0], m_.panel, Tail::guard, name + ".j", name + ".l");
    Loops order = {columns.outer, loops[1]};
    ScheduleBuilder::Cut bytes{loops.size() > 2 ? loops[2] : Loop(), {}};
    if (step > 1) bytes = s_.split(bytes.outer, step, Tail::guard, name + ".s", name + ".b");
    for (const Loop& loop : {bytes.outer, columns.inner, bytes.inner})
      if (loop.defined()) order.push_back(loop);
    s_.reorder(order);
    if (!constant) m_.copies.push_back(copy);
    return copy.buffer();
  }

  MatMulStages::Blocks::OfRows& of_rows(const Stage& stage) {
    return *std::ranges::find(blocks_.of_rows, stage, &MatMulStages::Blocks::OfRows::stage);
  }

  // Puts rounded numbers at the same place in their bytes together.
  void order_rounded_rows() {
    MatMulStages::Blocks::OfRows& rows = of_rows(blocks_.rounded);
    const auto cut = s_.split(rows.along, in_byte_, Tail::guard, rows.along.name(), "xr");
    s_.reorder({cut.inner, cut.outer});
    rows.along = cut.outer;
    const Expr step = var("k"), together(in_byte_);
    s_.layout(rows.stage.buffer(), {"r", "g", "k"},
              {var("r"), var("g"), floor_mod(step, together), floor_div(step, together)});
    if (product_.defined()) s_.retype(rows.stage.buffer(), product_.type);
  }

  // Lets sums cover whole panels, and a free number of rows whole register tiles.
  void fill_tiles(const Loop& row, const Loop& column) {
    s_.pad(column, m_.panel);
    if (!s_.extent(row)) s_.pad(row, tile_.rows);
  }

  // Stage codes: the numbers, one in each byte, [panel, block, step, place in the byte, column,
  // byte]
  void extract_numbers() {
    s_.narrow(blocks_.sums, Factor::right, numbers_type_);
    const auto steps = s_.split(blocks_.step, product_.depth, Tail::guard, blocks_.step.name(),
                                "kp");
    s_.reorder({steps.outer, blocks_.in_byte, steps.inner});
    const Expr column = variable(blocks_.column), panel(m_.panel);
    const auto packed = s_.pack(blocks_.sums, Factor::right, "codes", "global",
                                {{floor_div(column, panel), "nj"},
                                 {variable(blocks_.block), "ng"},
                                 {variable(steps.outer), "ns"},
                                 {variable(blocks_.in_byte), "nr"},
                                 {floor_mod(column, panel), "nl"},
                                 {variable(steps.inner), "nb"}});
    blocks_.numbers = packed.stage;
    blocks_.numbers_column = packed.loops[4], blocks_.numbers_of_step = packed.loops[5];
    blocks_.step = steps.outer;
    m_.instruction = product_.sums(steps.inner);
  }

  // Without an instruction the target multiplies floats, which sum small integers without rounding.
  void sum_floats() {
    if (s_.retype(blocks_.sums.buffer(), type_))
      for (const Stage& stage : {blocks_.row_sums, blocks_.rounded})
        s_.retype(stage.buffer(), type_);
  }

  ScheduleBuilder& s_;
  MatMulStages& m_;
  MatMulStages::Blocks& blocks_;
  DType type_;  // type of the scaled sums
  int64_t lanes_, in_byte_, bytes_;
  RegisterTile tile_;
  IntegerProduct product_;
  DType numbers_type_ = DType::u8;
};

}  // namespace

void arrange_matmul_nbits(ScheduleBuilder& s, MatMulStages& m) { NBitsArrangement(s, m).run(); }

}  // namespace tw
