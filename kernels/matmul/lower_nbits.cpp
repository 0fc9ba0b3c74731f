// Products with a matrix of small integers, which stays in memory as it is. Its bytes are in panels
// [N/P][blocks][steps of some bytes][P][bytes of a step], with scales and zeros [N/P][blocks][P]
// beside them. Each block of the depth has a sum of its own (bsum). It is scaled and added to acc,
// after subtracting the zero times the sum of the row's block (xs, xz).
//
// For float rows a step is one byte, and the kernel extracts numbers from the bytes while it
// multiplies. For byte rows a step is the bytes that an instruction of the target takes at once.
// Their numbers are extracted first (codes), those at the same place in their bytes together. The
// rows are rounded in that order (xm, the largest magnitude of a block; xu, the unit; xp). Other
// stages: w, ws, wz (packing at run time only), y.
#include "kernels/common/integer_product.h"
#include "kernels/common/register_tile.h"
#include "kernels/common/target_builder.h"
#include "kernels/matmul/matmul.h"

namespace tw {
namespace {

constexpr double kMost = 127;  // largest magnitude in rounded rows

class NBitsLowering {
 public:
  NBitsLowering(TargetBuilder& b, const Node& node)
      : b_(b),
        node_(node),
        left_(node.inputs[0]),
        codes_(node.inputs[1]),
        scales_(node.inputs[2]),
        zeros_(node.inputs[3]),
        bits_(std::get<op::MatMulNBits>(node.attrs).bits),
        block_(std::get<op::MatMulNBits>(node.attrs).block),
        byte_rows_(std::get<op::MatMulNBits>(node.attrs).byte_rows),
        type_(accumulator_type(b.type(node.output).dtype)),
        depth_(b.type(left_).shape.back()),
        columns_(b.type(node.output).shape.back()),
        blocks_(b.type(codes_).shape[1]) {
    const Shape& xs = b.type(left_).shape;
    rows_ = simplify(element_count(Shape(xs.begin(), xs.end() - 1)));
    const int64_t lanes = std::max(1, b.target.lanes(dtype_bytes(type_)));
    const auto known = as_const(depth_);
    const auto row_bytes = known ? std::optional<int64_t>(*known * dtype_bytes(type_))
                                 : std::nullopt;
    const RegisterTile tile = product_tile(b.target, lanes, as_const(rows_), as_const(columns_),
                                           row_bytes);
    panel_ = tile.vectors * lanes;
    panels_ = simplify(ceil_div(columns_, panel_));
    // A free number of rows is summed in whole register tiles. Rows behind the last one repeat it.
    padded_rows_ = as_const(rows_) ? rows_ : simplify(ceil_div(rows_, tile.rows) * Expr(tile.rows));
    if (byte_rows_) choose_instruction(lanes);
  }

  Expected<Lowered<MatMulStages>> run() {
    m_.arranged = true;
    m_.panel = panel_;
    const BufferId w = packed_codes();
    m_.weights = b_.name_of(w);
    if (byte_rows_) round_rows();
    const BufferId sums = block_sums(product_.defined() ? numbers_of(w) : w);
    const BufferId acc = scaled_sums(sums);
    m_.copies.insert(m_.copies.begin(), b_.stage_of(w));
    m_.y = write_product(b_, node_, true, [&](const Index& at) { return load(acc, type_, at); });
    return b_.finish(std::move(m_));
  }

 private:
  int64_t in_byte() const { return 8 / bits_; }
  int64_t steps() const { return block_ / in_byte() / product_.depth; }
  Expr width() const { return simplify(panels_ * Expr(panel_)); }
  Expr widened(const Expr& e) const { return e.type() == type_ ? e : cast(type_, e); }

  // Chooses an instruction whose right operand holds the numbers' range, signed or unsigned.
  void choose_instruction(int64_t lanes) {
    const ProductExtents extents{lanes, block_ / in_byte(), 1};
    for (const DType numbers : {DType::u8, DType::i8}) {
      if (numbers == DType::i8 && bits_ == 8) continue;
      const IntegerProduct found = integer_product(b_.target, {DType::i8, 0}, numbers, extents);
      if (found.depth > product_.depth) product_ = found, numbers_type_ = numbers;
    }
    m_.instruction = product_.sums({});
  }

  // The panels of bytes. Columns behind the last one repeat it.
  BufferId packed_codes() {
    std::vector<Axis> axes = {
        {"wj", panels_}, {"wg", blocks_}, {"ws", Expr(steps())}, {"wl", Expr(panel_)}};
    if (product_.defined()) axes.push_back({"wb", Expr(product_.depth)});
    return b_.packed(codes_, "w", axes, [&](const auto& read) {
      const Expr byte = product_.defined() ? var("ws") * Expr(product_.depth) + var("wb")
                                           : var("ws");
      return read({last_column("wj", "wl"), var("wg"), byte});
    });
  }

  Expr last_column(const char* panel, const char* lane) const {
    return min(var(panel) * Expr(panel_) + var(lane), columns_ - Expr(1));
  }

  // The element of scales or zeros for block kb and column aj
  Expr of_column(ValueId v, const std::string& name) {
    const TensorType& t = b_.type(v);
    if (t.shape.empty()) return widened(b_.parameter_element(v, {}));
    const std::vector<Axis> axes = {
        {name + "j", panels_}, {name + "g", blocks_}, {name + "l", Expr(panel_)}};
    const BufferId panels = b_.packed(v, name, axes, [&](const auto& read) {
      return read({last_column((name + "j").c_str(), (name + "l").c_str()), var(name + "g")});
    });
    m_.copies.push_back(b_.stage_of(panels));
    return widened(load(panels, t.dtype, {panel_of("aj"), var("kb"), lane_of("aj")}));
  }

  Expr panel_of(const char* column) const {
    return b_.simplified(floor_div(var(column), Expr(panel_)));
  }
  Expr lane_of(const char* column) const {
    return b_.simplified(floor_mod(var(column), Expr(panel_)));
  }

  // The left operand's element; 0 behind its end
  Expr left_element(const Expr& row, const Expr& k) {
    const DType type = b_.type(left_).dtype;
    Expr element;
    if (b_.graph.is_constant(left_)) {
      const Shape& xs = b_.type(left_).shape;
      Index at = unflatten_index(Shape(xs.begin(), xs.end() - 1), row);
      for (Expr& e : at) e = b_.simplified(e);
      at.push_back(k);
      element = b_.parameter_element(left_, at);
    } else {
      element = load(b_.input(left_, {rows_, depth_}), type, {row, k});
    }
    const Expr inside = b_.simplified(lt(k, depth_));
    return widened(is_const(inside, 1) ? element : select(inside, element, imm(0, type)));
  }

  // Adds a stage over rows and blocks. It combines what `element` gives for each step of a block.
  BufferId of_blocks(
      const std::string& name, DType type, Combiner combiner,
      const std::function<Expr(const Expr& row, const Expr& block, const Expr& step)>& element) {
    const std::vector<Axis> axes = {
        {name + "i", rows_}, {name + "g", blocks_}, {name + "k", Expr(block_), AxisRole::reduce}};
    b_.declare(axes);
    const BufferId made = b_.temp(name, type, {rows_, blocks_});
    const Stage stage = b_.stage(name, axes, made, {var(name + "i"), var(name + "g")},
                                 element(var(name + "i"), var(name + "g"), var(name + "k")),
                                 combiner, imm(0, type));
    m_.blocks.of_rows.push_back({stage, axes[0].loop(), axes[2].loop()});
    return made;
  }

  // Stage xp: rounded rows in the order of the numbers, [row, block, place in a byte, byte]
  void round_rows() {
    most_ = of_blocks("xm", type_, Combiner::max,
                      [&](const Expr& row, const Expr& block, const Expr& step) {
                        return unary(UnaryOp::abs, left_element(row, block * Expr(block_) + step));
                      });
    const std::vector<Axis> axes = {
        {"xi", rows_}, {"xg", blocks_}, {"xr", Expr(in_byte())}, {"xb", Expr(block_ / in_byte())}};
    b_.declare(axes);
    rounded_type_ = product_.defined() ? product_.type : type_;
    rounded_ = b_.temp("xp", rounded_type_, extents(axes));
    const Expr k = var("xg") * Expr(block_) + var("xb") * Expr(in_byte()) + var("xr");
    const Expr most = load(most_, type_, {var("xi"), var("xg")}), zero = imm(0, type_);
    const Expr inverse = select(lt(zero, most), binary(BinaryOp::div, imm(kMost, type_), most),
                                zero);
    const Expr value = unary(UnaryOp::round, left_element(var("xi"), k) * inverse);
    const Stage stage = b_.stage(
        "xp", axes, rounded_, variables(axes),
        product_.defined() ? product_.copied(cast(DType::i8, value)) : value);
    m_.blocks.of_rows.push_back({stage, axes[0].loop(), axes[3].loop()});
  }

  // Rows that fill a tile up repeat the last one.
  Expr last_row_at_most(const Expr& row) const {
    return as_const(rows_) ? row : min(row, rows_ - Expr(1));
  }

  // A row's factor in a product: the float itself, or its rounded value
  Expr row_number(const Expr& row, const Expr& block, const Expr& byte, const Expr& place) {
    const Expr there = last_row_at_most(row);
    if (byte_rows_) return load(rounded_, rounded_type_, {there, block, place, byte});
    return left_element(there, block * Expr(block_) + byte * Expr(in_byte()) + place);
  }

  Expr number(const Expr& byte, const Expr& within) const {
    if (bits_ == 8) return byte;
    const Expr shift = cast(byte.type(), b_.simplified(within * Expr(bits_)));
    return binary(BinaryOp::bit_and, binary(BinaryOp::shr, byte, shift),
                  int_imm((1 << bits_) - 1, byte.type()));
  }

  // Stage codes: the numbers, one in each byte, [panel, block, step, place in the byte, column,
  // byte]
  BufferId numbers_of(BufferId w) {
    const std::vector<Axis> axes = {{"nj", panels_},       {"ng", blocks_},
                                    {"ns", Expr(steps())}, {"nr", Expr(in_byte())},
                                    {"nl", Expr(panel_)},  {"nb", Expr(product_.depth)}};
    b_.declare(axes);
    const BufferId codes = b_.temp("codes", numbers_type_, extents(axes));
    const Expr byte = load(w, DType::u8, {var("nj"), var("ng"), var("ns"), var("nl"), var("nb")});
    const Expr value = number(byte, var("nr"));
    m_.blocks.numbers = b_.stage("codes", axes, codes, variables(axes),
                                 numbers_type_ == DType::u8 ? value : cast(numbers_type_, value));
    m_.blocks.numbers_column = axes[4].loop(), m_.blocks.numbers_of_step = axes[5].loop();
    return codes;
  }

  // Stage bsum: sums of blocks, [row, block, column]
  BufferId block_sums(BufferId numbers) {
    sum_type_ = product_.defined() ? DType::i32 : type_;
    std::vector<Axis> axes = {{"bi", padded_rows_},
                              {"bg", blocks_},
                              {"bj", width()},
                              {"ks", Expr(steps()), AxisRole::reduce},
                              {"kr", Expr(in_byte()), AxisRole::reduce}};
    if (product_.defined()) axes.push_back({"kp", Expr(product_.depth), AxisRole::reduce});
    b_.declare(axes);
    const Expr byte = product_.defined()
                          ? b_.simplified(var("ks") * Expr(product_.depth) + var("kp"))
                          : var("ks");
    const Expr left = cast(sum_type_, row_number(var("bi"), var("bg"), byte, var("kr")));
    Index at = {panel_of("bj"), var("bg"), var("ks")};
    Expr right;
    if (product_.defined()) {
      at.insert(at.end(), {var("kr"), lane_of("bj"), var("kp")});
      right = load(numbers, numbers_type_, at);
    } else {
      at.push_back(lane_of("bj"));
      right = number(cast(DType::i32, load(numbers, DType::u8, at)), var("kr"));
    }
    const BufferId sums = b_.temp("bsum", sum_type_, {padded_rows_, blocks_, width()});
    auto& m = m_.blocks;
    m.sums = b_.stage("bsum", axes, sums, {var("bi"), var("bg"), var("bj")},
                      left * cast(sum_type_, right), Combiner::add, imm(0, sum_type_));
    m.row = axes[0].loop(), m.column = axes[2].loop();
    m.step = axes[3].loop(), m.in_byte = axes[4].loop();
    if (product_.defined()) m_.instruction.depth = axes[5].loop();
    return sums;
  }

  // Stage xs: sums of the rows' blocks
  BufferId row_sums() {
    return of_blocks(
        "xs", sum_type_, Combiner::add, [&](const Expr& row, const Expr& block, const Expr& step) {
          const Expr bytes(block_ / in_byte());
          return cast(sum_type_, row_number(row, block, b_.simplified(floor_mod(step, bytes)),
                                            b_.simplified(floor_div(step, bytes))));
        });
  }

  // Adds a stage over rows and blocks. `element` reads other stages at [row, block].
  BufferId by_block(const std::string& name, const std::function<Expr(const Index& at)>& element) {
    const std::vector<Axis> axes = {{name + "i", rows_}, {name + "g", blocks_}};
    b_.declare(axes);
    const BufferId made = b_.temp(name, type_, {rows_, blocks_});
    const Stage stage = b_.stage(name, axes, made, variables(axes), element(variables(axes)));
    m_.blocks.of_rows.push_back({stage, axes[0].loop(), axes[1].loop()});
    return made;
  }

  // Stage acc: [row, column]. Values that exist once for each row and block are computed earlier
  // (xu: the unit of rounded rows; xz: the amount that a zero subtracts).
  BufferId scaled_sums(BufferId sums) {
    const BufferId of_rows = row_sums();
    const bool one_zero = b_.type(zeros_).shape.empty();
    BufferId unit;
    if (byte_rows_)
      unit = by_block(
          "xu", [&](const Index& at) { return divide(load(most_, type_, at), imm(kMost, type_)); });
    const BufferId less = by_block("xz", [&](const Index& at) {
      Expr sum = widened(load(of_rows, sum_type_, at));
      if (one_zero) sum = of_column(zeros_, "wz") * sum;
      return byte_rows_ ? sum * load(unit, type_, at) : sum;
    });
    const std::vector<Axis> axes = {
        {"ai", padded_rows_}, {"aj", width()}, {"kb", blocks_, AxisRole::reduce}};
    b_.declare(axes);
    const BufferId acc = b_.temp("acc", type_, {padded_rows_, width()});
    const Expr i = var("ai"), g = var("kb"), row = last_row_at_most(i);
    Expr sum = widened(load(sums, sum_type_, {i, g, var("aj")}));
    if (byte_rows_) sum = sum * load(unit, type_, {row, g});
    Expr off = load(less, type_, {row, g});
    if (!one_zero) off = of_column(zeros_, "wz") * off;
    m_.acc = b_.stage("acc", axes, acc, {i, var("aj")}, of_column(scales_, "ws") * (sum - off),
                      Combiner::add, imm(0, type_));
    m_.acc_row = axes[0].loop(), m_.acc_column = axes[1].loop();
    m_.depth = {axes[2].loop()};
    return acc;
  }

  TargetBuilder& b_;
  const Node& node_;
  const ValueId left_, codes_, scales_, zeros_;
  const int64_t bits_, block_;
  const bool byte_rows_;
  const DType type_;  // type of the sums
  const Expr depth_, columns_, blocks_;
  Expr rows_, padded_rows_, panels_;
  int64_t panel_ = 1;
  IntegerProduct product_;
  DType numbers_type_ = DType::u8, rounded_type_ = DType::i8, sum_type_ = DType::i32;
  BufferId rounded_, most_;
  MatMulStages m_;
};

}  // namespace

Expected<Lowered<MatMulStages>> lower_matmul_nbits(TargetBuilder& b, const Node& node) {
  return NBitsLowering(b, node).run();
}

}  // namespace tw
