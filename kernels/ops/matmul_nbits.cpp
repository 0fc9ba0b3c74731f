// Products with a matrix of small integers as they are defined. A byte holds several numbers. Each
// block of the depth has a sum of its own (bsum), which is scaled and added to acc:
//
//   for bi in rows { for bg in blocks { for bj in columns {
//     for ks in bytes reduce { for kr in places reduce {
//       bsum: bsum[bi, bg, bj] += left[bi, bg * block + ks * places + kr]
//                                 * (weights[bj, bg, ks] >> kr * bits & mask) init 0
//     } }
//   } } }
//   for ai in rows { for aj in columns { for kb in blocks reduce {
//     acc: acc[ai, aj] += scales[aj, kb] * (bsum[ai, kb, aj] - zeros[aj, kb] * xz[ai, kb]) init 0
//   } } }
//
// Stage xs sums the row's blocks, numbers at the same place in their bytes together, and xz is the
// amount that a zero subtracts. For byte rows the left factor is rounded to 8 bits (xm, the largest
// magnitude of a block; xp, the rounded numbers; xu, the unit), and sums of blocks are integers.
#include "kernels/common/group_builder.h"
#include "kernels/matmul/matmul.h"

namespace tw {
namespace {

constexpr double kMost = 127;  // largest magnitude in rounded rows

class NBitsDefinition {
 public:
  NBitsDefinition(GroupBuilder& b, const Node& node)
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
        sum_type_(byte_rows_ ? DType::i32 : type_),
        depth_(b.type(left_).shape.back()),
        columns_(b.type(node.output).shape.back()),
        blocks_(b.type(codes_).shape[1]) {
    const Shape& xs = b.type(left_).shape;
    rows_ = simplify(element_count(Shape(xs.begin(), xs.end() - 1)));
  }

  Lowered<MatMulStages> run() {
    m_.blocks.depth = depth_;
    m_.weights = parameter(codes_, "weights");
    if (!one_zero()) m_.blocks.zeros = parameter(zeros_, "zeros");
    m_.blocks.scales = parameter(scales_, "scales");
    if (byte_rows_) round_rows();
    const BufferId sums = block_sums();
    const BufferId acc = scaled_sums(sums, row_sums());
    m_.y = write_product(b_, node_, true, [&](const Index& at) { return load(acc, type_, at); });
    return b_.finish(std::move(m_));
  }

 private:
  int64_t in_byte() const { return 8 / bits_; }
  Expr bytes() const { return Expr(block_ / in_byte()); }
  bool one_zero() const { return b_.type(zeros_).shape.empty(); }
  Expr widened(const Expr& e) const { return e.type() == type_ ? e : cast(type_, e); }

  // A tensor of the right operand. None: a constant of one element is no parameter.
  BufferName parameter(ValueId v, const char* name) {
    if (b_.graph.is_constant(v) && is_const(element_count(b_.type(v).shape), 1)) return {};
    return b_.name_of(b_.input(v, {}, name));
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

  // Adds a stage over rows and blocks, which `element` reads at [row, block], and the steps of a
  // block that it combines.
  BufferId by_block(const std::string& name, DType type, const std::vector<Axis>& steps,
                    Combiner combiner, const std::function<Expr(const Index& at)>& element) {
    std::vector<Axis> axes = {{name + "i", rows_}, {name + "g", blocks_}};
    const Index at = variables(axes);
    axes.insert(axes.end(), steps.begin(), steps.end());
    b_.declare(axes);
    const BufferId made = b_.temp(name, type, {rows_, blocks_});
    const Stage stage = b_.stage(name, axes, made, at, element(at), combiner,
                                 combiner == Combiner::none ? Expr() : imm(0, type));
    m_.blocks.of_rows.push_back({stage, axes[0].loop(), axes.back().loop()});
    return made;
  }

  void round_rows() {
    most_ = by_block("xm", type_, {{"xmk", Expr(block_), AxisRole::reduce}}, Combiner::max,
                     [&](const Index& at) {
                       return unary(UnaryOp::abs,
                                    left_element(at[0], at[1] * Expr(block_) + var("xmk")));
                     });
    const std::vector<Axis> axes = {{"xi", rows_}, {"xg", blocks_}, {"xb", Expr(block_)}};
    b_.declare(axes);
    rounded_ = b_.temp("xp", DType::i8, extents(axes));
    const Expr most = load(most_, type_, {var("xi"), var("xg")}), zero = imm(0, type_);
    const Expr inverse = select(lt(zero, most), binary(BinaryOp::div, imm(kMost, type_), most),
                                zero);
    const Expr element = left_element(var("xi"), var("xg") * Expr(block_) + var("xb"));
    const Stage stage = b_.stage("xp", axes, rounded_, variables(axes),
                                 cast(DType::i8, unary(UnaryOp::round, element * inverse)));
    m_.blocks.rounded = stage;
    m_.blocks.of_rows.push_back({stage, axes[0].loop(), axes[2].loop()});
  }

  // A row's factor in a product: the float itself, or its rounded value
  Expr row_number(const Expr& row, const Expr& block, const Expr& byte, const Expr& place) {
    const Expr step = byte * Expr(in_byte()) + place;
    if (!byte_rows_) return left_element(row, block * Expr(block_) + step);
    return cast(sum_type_, load(rounded_, DType::i8, {row, block, b_.simplified(step)}));
  }

  // The number at a place in a byte
  Expr number(const Expr& byte, const Expr& place) const {
    const Expr wide = cast(DType::i32, byte);
    if (bits_ == 8) return wide;
    const Expr shift = cast(DType::i32, b_.simplified(place * Expr(bits_)));
    return binary(BinaryOp::bit_and, binary(BinaryOp::shr, wide, shift),
                  int_imm((1 << bits_) - 1, DType::i32));
  }

  // Stage bsum: sums of blocks, [row, block, column]
  BufferId block_sums() {
    const std::vector<Axis> axes = {{"bi", rows_},
                                    {"bg", blocks_},
                                    {"bj", columns_},
                                    {"ks", bytes(), AxisRole::reduce},
                                    {"kr", Expr(in_byte()), AxisRole::reduce}};
    b_.declare(axes);
    const Expr left = row_number(var("bi"), var("bg"), var("ks"), var("kr"));
    const Expr byte = b_.parameter_element(codes_, {var("bj"), var("bg"), var("ks")});
    const BufferId sums = b_.temp("bsum", sum_type_, {rows_, blocks_, columns_});
    const Expr right = number(byte, var("kr"));
    auto& m = m_.blocks;
    m.sums = b_.stage("bsum", axes, sums, {var("bi"), var("bg"), var("bj")},
                      left * (right.type() == sum_type_ ? right : cast(sum_type_, right)),
                      Combiner::add, imm(0, sum_type_));
    m.row = axes[0].loop(), m.block = axes[1].loop(), m.column = axes[2].loop();
    m.step = axes[3].loop(), m.in_byte = axes[4].loop();
    return sums;
  }

  // Stage xs: sums of the rows' blocks
  BufferId row_sums() {
    const std::vector<Axis> steps = {{"xsr", Expr(in_byte()), AxisRole::reduce},
                                     {"xsb", bytes(), AxisRole::reduce}};
    const BufferId sums = by_block("xs", sum_type_, steps, Combiner::add, [&](const Index& at) {
      return row_number(at[0], at[1], var("xsb"), var("xsr"));
    });
    m_.blocks.row_sums = m_.blocks.of_rows.back().stage;
    return sums;
  }

  // Stage acc: [row, column]. Values that exist once for each row and block are computed earlier
  // (xu: the unit of rounded rows; xz: the amount that a zero subtracts).
  BufferId scaled_sums(BufferId sums, BufferId of_rows) {
    BufferId unit;
    if (byte_rows_)
      unit = by_block("xu", type_, {}, Combiner::none, [&](const Index& at) {
        return divide(load(most_, type_, at), imm(kMost, type_));
      });
    const BufferId less = by_block("xz", type_, {}, Combiner::none, [&](const Index& at) {
      Expr sum = widened(load(of_rows, sum_type_, at));
      if (one_zero()) sum = widened(b_.parameter_element(zeros_, {})) * sum;
      return byte_rows_ ? sum * load(unit, type_, at) : sum;
    });
    const std::vector<Axis> axes = {
        {"ai", rows_}, {"aj", columns_}, {"kb", blocks_, AxisRole::reduce}};
    b_.declare(axes);
    const BufferId acc = b_.temp("acc", type_, {rows_, columns_});
    const Expr i = var("ai"), j = var("aj"), g = var("kb");
    Expr sum = widened(load(sums, sum_type_, {i, g, j}));
    if (byte_rows_) sum = sum * load(unit, type_, {i, g});
    Expr off = load(less, type_, {i, g});
    if (!one_zero()) off = widened(b_.parameter_element(zeros_, {j, g})) * off;
    const Expr scale = widened(b_.parameter_element(scales_, {j, g}));
    m_.acc = b_.stage("acc", axes, acc, {i, j}, scale * (sum - off), Combiner::add, imm(0, type_));
    m_.acc_row = axes[0].loop(), m_.acc_column = axes[1].loop();
    m_.depth = {axes[2].loop()};
    return acc;
  }

  GroupBuilder& b_;
  const Node& node_;
  const ValueId left_, codes_, scales_, zeros_;
  const int64_t bits_, block_;
  const bool byte_rows_;
  const DType type_, sum_type_;  // types of the sums, and of a block's sums
  const Expr depth_, columns_, blocks_;
  Expr rows_;
  BufferId rounded_, most_;
  MatMulStages m_;
};

}  // namespace

Lowered<MatMulStages> define_matmul_nbits(GroupBuilder& b, const Node& node) {
  return NBitsDefinition(b, node).run();
}

}  // namespace tw
