// Turns bytes between quantized operators into i8, which products want:
// before: %q: u8[n] = quantize(%x, %s, const 128) to=u8
//         %y: f32[n] = dequantize(%q, %s, const 128)
// after:  %q: i8[n] = quantize(%x, %s, const 0) to=i8
//         %y: f32[n] = dequantize(%q, %s, const 0)
// If the target's best instruction multiplies i8 weights by u8 (vpdpbusd), the conversion goes the
// other way, so that the instruction reads its operand where it lies.
//
// Bytes between quantized operators get one type, 128 less or more, and so do their zero points:
// the numbers that they stand for stay exactly the same. Products of integers then meet only one
// type. Values of the graph's interface keep theirs. Why here: before fuse-quantization takes
// quantize and dequantize apart.
#include <set>

#include "ir/schedule/product_form.h"
#include "passes/passes.h"
#include "passes/quantization/quantization.h"

namespace tw {
namespace {

constexpr int64_t kShift = 128;

// i8, or u8 if the target's best instruction for i8 weights multiplies them by u8.
DType wanted_bytes(const Target& target) {
  const auto best = best_product(
      target,
      [](const ProductForm& form) {
        return is_byte(form.left_type) && form.right_type == DType::i8 &&
               form.sum_type == DType::i32 && form.intrinsic->scopes.empty();
      },
      [](const ProductForm& form) { return form.dense() && !form.sums_in_memory; });
  return best ? best->left_type : DType::i8;
}

class Signer {
 public:
  Signer(Graph& graph, DType to) : graph_(graph), to_(to), users_(graph.users()) {}

  Expected<bool> run(PassContext& context) {
    for (size_t i = 0; i < graph_.value_count(); ++i) {
      const ValueId id{static_cast<int32_t>(i)};
      if (graph_.value(id).type.dtype == from() && graph_.value(id).def.valid()) chosen_.insert(id);
    }
    for (const Graph::Output& output : graph_.outputs()) chosen_.erase(output.value);
    while (std::erase_if(chosen_, [this](ValueId v) { return !suits(v); })) {}
    for (const ValueId v : chosen_) shift(v);
    context.report = llvm::formatv("{0} values from {1} to {2}", chosen_.size(), dtype_name(from()),
                                   dtype_name(to_))
                         .str();
    return !chosen_.empty();
  }

 private:
  DType from() const { return to_ == DType::u8 ? DType::i8 : DType::u8; }

  bool made_well(const Node& maker) const {
    if (get_if<op::Quantize>(&maker)) return quantization(graph_, maker).has_value();
    if (!moves_elements(maker)) return false;
    const size_t data = get_if<op::Concat>(&maker) ? maker.inputs.size() : 1;
    for (size_t i = 0; i < data; ++i)
      if (!chosen_.contains(maker.inputs[i])) return false;
    return true;
  }
  bool read_well(const Node& user, ValueId v) const {
    if (get_if<op::Dequantize>(&user)) return quantization(graph_, user).has_value();
    return moves_elements(user) && chosen_.contains(user.output) &&
           (get_if<op::Concat>(&user) || user.inputs[0] == v);
  }
  bool suits(ValueId v) const {
    if (graph_.def(v)->erased || !made_well(*graph_.def(v))) return false;
    for (NodeId user : users_[static_cast<size_t>(v.index)])
      if (!read_well(graph_.node(user), v)) return false;
    return true;
  }

  void shift(ValueId v) {
    const NodeId maker = graph_.value(v).def;
    if (get_if<op::Quantize>(&graph_.node(maker))) {
      std::get<op::Quantize>(graph_.node(maker).attrs).to = to_;
      shift_zero(maker);
    }
    graph_.value(v).type.dtype = to_;
    for (NodeId user : users_[static_cast<size_t>(v.index)])
      if (get_if<op::Dequantize>(&graph_.node(user))) shift_zero(user);
  }

  void shift_zero(NodeId id) {
    const ValueId old = input_or_none(graph_.node(id), 2);
    const Tensor before = old.valid() ? graph_.constant_tensor(old) : Tensor::zeros(from(), {});
    Tensor after = Tensor::zeros(to_, before.shape);
    const int64_t more = to_ == DType::u8 ? kShift : -kShift;
    for (int64_t i = 0; i < before.size(); ++i) after.set_int(i, before.int_at(i) + more);
    const ValueId zero = graph_.add_constant(graph_.value(graph_.node(id).output).name + "_zero",
                                             after);
    graph_.node(id).inputs.resize(3);
    graph_.set_input(id, 2, zero);
  }

  Graph& graph_;
  DType to_;
  std::vector<std::vector<NodeId>> users_;
  std::set<ValueId> chosen_;
};

}  // namespace

Expected<bool> sign_quantization(Graph& graph, PassContext& context) {
  return Signer(graph, wanted_bytes(context.target)).run(context);
}

}  // namespace tw
