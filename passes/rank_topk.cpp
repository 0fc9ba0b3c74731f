// before: %top: f32[4, k], %at: i64[4, k] = extern(%x) function=topk ints=[1,1,1] dims=[k]
// after:  %rank: i64[4, n] = how many elements of the row are better, or as good and before it
//         %at: i64[4, k] = arg_reduce(%rank == iota of k) over n    %top = take(%x, %at)
// Only for targets whose device has threads: they compute the ranks side by side, while topk is a
// function of the processor's library. A rank takes a comparison with each element of the row, so
// rows of many elements keep topk. Why here: once k is a constant, and before movement is merged.
#include "ir/graph/externs.h"
#include "ir/graph/queries.h"
#include "passes/passes.h"

namespace tw {
namespace {

constexpr int64_t kMostComparisons = int64_t{1} << 28;

struct Ranked {
  ValueId x;
  size_t axis = 0;
  bool largest = true;
  Shape shape;  // the shape of x
  Expr k;
};

// The operands of a topk node with few enough elements to rank.
std::optional<Ranked> ranked(const Graph& graph, const Node& node) {
  const auto* topk = get_if<op::Extern>(&node);
  if (!topk || topk->function != ExternFunction::topk) return std::nullopt;
  const TensorType& x = graph.value(node.inputs[0]).type;
  const auto axis = static_cast<size_t>(topk->ints[0]);
  const bool compares = is_float(x.dtype) || is_signed_int(x.dtype) || x.dtype == DType::u8;
  const std::optional<std::vector<int64_t>> shape = static_shape(x.shape);
  if (!compares || !x.layout.plain() || !shape || as_const(topk->dims[0]).value_or(0) < 1)
    return std::nullopt;
  int64_t comparisons = (*shape)[axis];
  for (const int64_t extent : *shape) {
    if (extent == 0 || comparisons > kMostComparisons / extent) return std::nullopt;
    comparisons *= extent;
  }
  return Ranked{node.inputs[0], axis, topk->ints[1] != 0, x.shape, topk->dims[0]};
}

class Ranking {
 public:
  Ranking(Graph& graph, NodeId node, Ranked topk) : graph_(graph), topk_(std::move(topk)) {
    const Node& like = graph.node(node);
    name_ = graph.value(like.output).name, node_name_ = like.name, source_ = like.source;
  }

  // Returns the places and the values.
  Expected<std::pair<ValueId, ValueId>> run() {
    const size_t axis = topk_.axis;
    const Expr n = topk_.shape[axis];
    // [.., n, 1, ..] and [.., 1, n, ..]: an element and its rivals
    Shape own = topk_.shape, other = topk_.shape;
    own.insert(own.begin() + static_cast<ptrdiff_t>(axis) + 1, Expr(1));
    other.insert(other.begin() + static_cast<ptrdiff_t>(axis), Expr(1));
    TW_ASSIGN(const ValueId before, earlier(own.size(), n));
    TW_ASSIGN(const ValueId mine, add(op::Reshape{own}, {topk_.x}, "own"));
    TW_ASSIGN(const ValueId theirs, add(op::Reshape{other}, {topk_.x}, "other"));
    TW_ASSIGN(const ValueId better, is_better(theirs, mine));
    TW_ASSIGN(const ValueId worse, is_better(mine, theirs));
    TW_ASSIGN(const ValueId equal, add(op::Unary{UnaryOp::logical_not}, {worse}, "equal"));
    TW_ASSIGN(const ValueId tied, binary(BinaryOp::logical_and, equal, before));
    TW_ASSIGN(const ValueId first, binary(BinaryOp::logical_or, better, tied));
    TW_ASSIGN(const ValueId one, add(op::Cast{DType::i32}, {first}, "one"));
    const auto across = static_cast<int64_t>(axis) + 1;
    TW_ASSIGN(const ValueId rank, add(op::Reduce{ReduceKind::sum, {across}, true}, {one}, "rank"));
    TW_ASSIGN(const ValueId places, at_ranks(rank, own.size()));
    op::Take take{{}, false, topk_.shape};
    take.shape[axis] = topk_.k;
    for (size_t i = 0; i < topk_.shape.size(); ++i)
      take.places.push_back(i == axis ? -1 : static_cast<int64_t>(i));
    TW_ASSIGN(const ValueId values, add(std::move(take), {topk_.x, places}, "best"));
    return std::pair(places, values);
  }

 private:
  Expected<ValueId> add(OpAttrs attrs, std::vector<ValueId> inputs, const char* suffix) {
    return graph_.add(std::move(attrs), std::move(inputs), name_ + "_" + suffix, node_name_,
                      source_);
  }
  Expected<ValueId> binary(BinaryOp function, ValueId a, ValueId b) {
    return add(op::Binary{function}, {a, b}, "compared");
  }
  // The index along an axis, in a shape with this extent there and 1 elsewhere.
  Expected<ValueId> index(size_t rank, size_t axis, const Expr& extent) {
    Shape shape(rank, Expr(1));
    shape[axis] = extent;
    return add(op::Iota{shape, static_cast<int64_t>(axis)}, {}, "index");
  }
  // [n, n]: true if the other element comes before this one.
  Expected<ValueId> earlier(size_t rank, const Expr& n) {
    TW_ASSIGN(const ValueId mine, index(rank, topk_.axis, n));
    TW_ASSIGN(const ValueId theirs, index(rank, topk_.axis + 1, n));
    return binary(BinaryOp::lt, theirs, mine);
  }
  // A NaN is larger than all numbers, and as large as another NaN.
  Expected<ValueId> is_better(ValueId a, ValueId b) {
    const ValueId large = topk_.largest ? a : b, small = topk_.largest ? b : a;
    TW_ASSIGN(const ValueId larger, binary(BinaryOp::lt, small, large));
    if (!is_float(graph_.value(topk_.x).type.dtype)) return larger;
    TW_ASSIGN(const ValueId nan, add(op::Unary{UnaryOp::is_nan}, {large}, "nan"));
    TW_ASSIGN(const ValueId other_nan, add(op::Unary{UnaryOp::is_nan}, {small}, "other_nan"));
    TW_ASSIGN(const ValueId number, add(op::Unary{UnaryOp::logical_not}, {other_nan}, "number"));
    TW_ASSIGN(const ValueId above, binary(BinaryOp::logical_and, nan, number));
    return binary(BinaryOp::logical_or, larger, above);
  }
  // The places of the ranks 0 to k - 1: [.., n, 1, ..] against [1.., k, ..1], reduced over n.
  Expected<ValueId> at_ranks(ValueId rank, size_t pairs) {
    TW_ASSIGN(const ValueId ranks, index(pairs, topk_.axis + 1, topk_.k));
    TW_ASSIGN(const ValueId narrow, add(op::Cast{DType::i32}, {ranks}, "ranks"));
    TW_ASSIGN(const ValueId here, binary(BinaryOp::eq, rank, narrow));
    TW_ASSIGN(const ValueId one, add(op::Cast{DType::i32}, {here}, "here"));
    return add(op::ArgReduce{false, static_cast<int64_t>(topk_.axis), false, false}, {one},
               "places");
  }

  Graph& graph_;
  Ranked topk_;
  std::string name_, node_name_, source_;
};

}  // namespace

Expected<bool> rank_topk(Graph& graph, PassContext& context) {
  if (context.target.axes.empty()) return false;
  int ranked_nodes = 0;
  for (const NodeId id : graph.order()) {
    std::optional<Ranked> topk = ranked(graph, graph.node(id));
    if (!topk) continue;
    TW_ASSIGN(const auto made, Ranking(graph, id, std::move(*topk)).run());
    graph.replace_uses(graph.node(id).output, made.second);
    graph.replace_uses(graph.node(id).extra[0], made.first);
    graph.erase(id);
    ++ranked_nodes;
  }
  context.report = llvm::formatv("{0} topk ranked", ranked_nodes).str();
  return ranked_nodes > 0;
}

}  // namespace tw
