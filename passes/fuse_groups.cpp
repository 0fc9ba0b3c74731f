// Attention is matched first (passes/match_attention.h). Then each node is decided by its class, of
// the four classes of TVM (OSDI'18, section 3), in three rounds:
//   1. complex_out (conv, matmul): takes the element-wise region behind it, with diamonds (SiLU,
//      GELU) and residual adds.
//   2. reduction (reduce, softmax, layer norm): takes the same region behind it, and element-wise
//      producers in front of it.
//   3. injective: takes the remaining nodes, from the last node of a chain backwards, as long as
//      nothing expensive is computed twice.
// Every group has one output value, and every node of a group leads to it. Hence groups cannot wait
// for each other: a path from group A to B and back would pass both outputs and be a cycle of
// nodes. Sorting groups by their last node is a topological order.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "ir/graph/index_checks.h"
#include "ir/graph/short_floats.h"
#include "ir/group.h"
#include "kernels/device/attention.h"
#include "passes/fuse_groups.h"
#include "passes/match_attention.h"
#include "passes/pass.h"
#include "passes/rewriter.h"
#include "passes/storage.h"

namespace tw {
namespace {

// Nodes of a group: the limit keeps a kernel's live values in registers and its code short
constexpr size_t kMaxNodes = 24;
constexpr size_t kMaxInputs = 12;  // tensors read by a group; uniform constants are immediates
// Reads in a group's expression, written out: a value that is read twice appears twice
constexpr int64_t kMaxReads = 512;

class Fuser {
 public:
  Fuser(const Graph& graph, const Target* device);
  std::vector<Group> run();
  std::vector<std::string> notes() {
    take_attention();
    return std::move(notes_);
  }

 private:
  struct Draft {
    std::set<int> nodes;  // positions in order_
    int anchor = -1;
  };
  // The way in which an injective group reads one of its nodes: by which mapping of points, and
  // whether it computes points more than once.
  struct Reading {
    int mapping = 0;
    bool repeated = false;
  };

  const Node& at(int position) const { return graph_.node(order_[static_cast<size_t>(position)]); }
  FusionClass class_at(int position) const { return op_info(at(position).attrs).fusion; }
  const TensorType& output_type(int position) const {
    return graph_.value(at(position).output).type;
  }
  const std::vector<int>& users_at(int position) const {
    return users_[static_cast<size_t>(at(position).output.index)];
  }
  bool is_output(int position) const {
    return outputs_[static_cast<size_t>(at(position).output.index)];
  }
  bool is_free(int position) const { return group_of_[static_cast<size_t>(position)] < 0; }
  int maker_of(ValueId value) const;
  bool same_space(int a, int b) const;
  bool fits(const std::set<int>& nodes) const;
  bool few_reads(const std::set<int>& nodes) const;
  bool written_in_place(int position) const;
  bool only_inside(int position, const std::set<int>& nodes) const;
  bool ends_product(int anchor, int last) const;
  void accept(Draft draft);
  void take_attention();
  bool in_blocks(const Attention& attention);
  void move_inside(std::set<int>& nodes, ValueId read) const;
  void take_operands(Draft& draft) const;
  void round_inside(std::set<int>& nodes, std::array<ValueId, 2>& operands) const;
  void widen_inside(std::set<int>& nodes, ValueId read) const;
  void grow_behind(Draft& draft) const;
  void grow_before_reduction(Draft& draft) const;
  void grow_injective(Draft& draft);
  std::optional<Reading> reading_of(int position, const Draft& draft) const;

  const Target* device_;  // has threads of its own; null: a processor
  std::vector<std::string> notes_;
  const Graph& graph_;
  std::vector<NodeId> order_;
  std::vector<int> position_of_;         // by node index
  std::vector<std::vector<int>> users_;  // by value index: positions, sorted, one entry a node
  std::vector<std::vector<ValueId>>
      reads_;                  // by position: tensors, each once; uniform constants are left out
  std::vector<bool> outputs_;  // by value index
  std::vector<int> group_of_;  // by position; -1: free
  std::vector<Reading> readings_;  // by position, for nodes of injective groups
  std::vector<Draft> drafts_;
};

// True for nodes that stay alone whatever their class: symbolic values, and changes of the layout.
bool stands_alone(const Node& node) {
  return std::holds_alternative<op::LayoutCast>(node.attrs) ||
         std::holds_alternative<op::ShapeOf>(node.attrs) ||
         std::holds_alternative<op::DimVector>(node.attrs);
}

// True if `last` is the quantized result of a product of integers. The group ends there: readers
// read a byte an element anyway, and accelerators end there too.
bool Fuser::ends_product(int anchor, int last) const {
  const auto* cast = get_if<op::Cast>(&at(last));
  return cast && cast->saturate && dtype_bytes(cast->to) == 1 && is_int(output_type(anchor).dtype);
}

bool is_window(const Node& node) { return std::holds_alternative<op::Pool>(node.attrs); }

// True if the node reads points of its input several times. A concat may compute all its parts at
// every point and choose one.
bool repeats_points(const Node& node) {
  const auto* expand = std::get_if<op::Expand>(&node.attrs);
  return (expand && !expand->exact) || std::holds_alternative<op::Gather>(node.attrs) ||
         std::holds_alternative<op::Take>(node.attrs) ||
         std::holds_alternative<op::Resize>(node.attrs) ||
         std::holds_alternative<op::Concat>(node.attrs);
}

bool is_cheap(UnaryOp function) {
  switch (function) {
    case UnaryOp::neg:
    case UnaryOp::abs:
    case UnaryOp::floor:
    case UnaryOp::ceil:
    case UnaryOp::round:
    case UnaryOp::trunc:
    case UnaryOp::tf32:
    case UnaryOp::sign:
    case UnaryOp::is_nan:
    case UnaryOp::is_inf:
    case UnaryOp::logical_not:
    case UnaryOp::bit_not: return true;
    case UnaryOp::exp:
    case UnaryOp::exp2:
    case UnaryOp::expm1:
    case UnaryOp::log:
    case UnaryOp::log1p:
    case UnaryOp::sqrt:
    case UnaryOp::rsqrt:
    case UnaryOp::tanh:
    case UnaryOp::erf:
    case UnaryOp::normal_cdf:
    case UnaryOp::sigmoid:
    case UnaryOp::sin:
    case UnaryOp::cos:
    case UnaryOp::tan:
    case UnaryOp::asin:
    case UnaryOp::acos:
    case UnaryOp::atan: return false;
  }
  TW_UNREACHABLE("bad unary operator");
}

bool is_cheap(BinaryOp function) {
  switch (function) {
    case BinaryOp::add:
    case BinaryOp::sub:
    case BinaryOp::mul:
    case BinaryOp::min:
    case BinaryOp::max:
    case BinaryOp::lt:
    case BinaryOp::le:
    case BinaryOp::eq:
    case BinaryOp::ne:
    case BinaryOp::logical_and:
    case BinaryOp::logical_or:
    case BinaryOp::logical_xor:
    case BinaryOp::bit_and:
    case BinaryOp::bit_or:
    case BinaryOp::bit_xor:
    case BinaryOp::shl:
    case BinaryOp::shr: return true;
    case BinaryOp::div:
    case BinaryOp::floor_div:
    case BinaryOp::floor_mod:
    case BinaryOp::mod:
    case BinaryOp::pow: return false;
  }
  TW_UNREACHABLE("bad binary operator");
}

// True if the node may be computed again for every reader: it takes a few instructions a point.
bool is_cheap(const Graph& graph, const Node& node) {
  if (const op::Unary* unary = get_if<op::Unary>(&node)) return is_cheap(unary->function);
  if (is_binary(&node, BinaryOp::div) && graph.is_constant(node.inputs[1]))
    return is_float(graph.value(node.output).type.dtype);
  if (const op::Binary* binary = get_if<op::Binary>(&node)) return is_cheap(binary->function);
  if (const op::Resize* resize = get_if<op::Resize>(&node))
    return resize->mode == ResizeMode::nearest;
  return !std::holds_alternative<op::BatchNorm>(node.attrs);
}

Fuser::Fuser(const Graph& graph, const Target* device)
    : device_(device),
      graph_(graph),
      order_(graph.order()),
      position_of_(graph.node_count(), -1),
      users_(graph.value_count()),
      reads_(order_.size()),
      outputs_(graph.value_count(), false),
      group_of_(order_.size(), -1),
      readings_(order_.size()) {
  std::map<ValueId, bool> uniform;
  for (size_t i = 0; i < order_.size(); ++i) {
    position_of_[static_cast<size_t>(order_[i].index)] = static_cast<int>(i);
    for (ValueId input : graph.node(order_[i]).inputs) {
      if (!input.valid()) continue;
      std::vector<int>& users = users_[static_cast<size_t>(input.index)];
      if (!users.empty() && users.back() == static_cast<int>(i)) continue;
      users.push_back(static_cast<int>(i));
      const auto [known, fresh] = uniform.try_emplace(input);
      if (fresh) known->second = splat(graph, input).has_value();
      if (!known->second) reads_[i].push_back(input);
    }
  }
  for (const Graph::Output& output : graph.outputs())
    outputs_[static_cast<size_t>(output.value.index)] = true;
  // Data symbols are read between kernels.
  for (const DataSymbol& symbol : graph.data_symbols)
    outputs_[static_cast<size_t>(symbol.value.index)] = true;
  for (NodeId id : order_)
    // Indices are checked between kernels.
    for (const IndexCheck& check : open_indices(graph, graph.node(id)))
      outputs_[static_cast<size_t>(check.source.index)] = true;
}

// The position of the node that makes the value; -1 for a graph input or a constant.
int Fuser::maker_of(ValueId value) const {
  if (!value.valid() || !graph_.value(value).def.valid()) return -1;
  return position_of_[static_cast<size_t>(graph_.value(value).def.index)];
}

// True if both outputs have the same points in the same layout.
bool Fuser::same_space(int a, int b) const {
  return equal(output_type(a).shape, output_type(b).shape) &&
         output_type(a).layout == output_type(b).layout;
}

bool Fuser::fits(const std::set<int>& nodes) const {
  if (nodes.size() > kMaxNodes) return false;
  std::set<ValueId> inputs;
  for (int position : nodes)
    for (ValueId input : reads_[static_cast<size_t>(position)]) {
      if (nodes.contains(maker_of(input))) continue;
      inputs.insert(input);
      if (inputs.size() > kMaxInputs) return false;
    }
  return few_reads(nodes);
}

int64_t reads_an_element(const Node& node, size_t input) {
  // An index is compared, wrapped and clamped
  const bool index = get_if<op::Gather>(&node) || get_if<op::Take>(&node);
  if (index && input > 0) return 3;
  if (const op::Resize* resize = get_if<op::Resize>(&node)) {
    const int64_t taps = resize->mode == ResizeMode::nearest  ? 1
                         : resize->mode == ResizeMode::linear ? 2
                                                              : 4;
    int64_t all = 1;
    for (const double scale : resize->scales)
      if (scale != 1 && all <= kMaxReads) all *= taps;
    return all;
  }
  return 1;
}

bool Fuser::few_reads(const std::set<int>& nodes) const {
  std::map<int, int64_t> often;  // by position: how often the node is computed for an element
  int64_t reads = 0;
  for (auto position = nodes.rbegin(); position != nodes.rend(); ++position) {
    const Node& node = at(*position);
    const int64_t times = std::max<int64_t>(often[*position], 1);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const int64_t more = times * reads_an_element(node, i);
      reads += more;
      if (reads > kMaxReads) return false;
      if (const int maker = maker_of(node.inputs[i]); nodes.contains(maker)) often[maker] += more;
    }
  }
  return true;
}

bool Fuser::only_inside(int position, const std::set<int>& nodes) const {
  const std::vector<int>& users = users_at(position);
  return !is_output(position) &&
         std::all_of(users.begin(), users.end(), [&](int user) { return nodes.contains(user); });
}

void Fuser::accept(Draft draft) {
  for (int position : draft.nodes)
    group_of_[static_cast<size_t>(position)] = static_cast<int>(drafts_.size());
  drafts_.push_back(std::move(draft));
}

// True if the device has one kernel for the whole attention; otherwise adds a note.
bool Fuser::in_blocks(const Attention& attention) {
  const auto inside = [&](ValueId v) {
    return std::ranges::any_of(attention.nodes,
                               [&](NodeId id) { return graph_.node(id).output == v; });
  };
  const auto problem = attention_problem(graph_, graph_.node(attention.scores),
                                         graph_.node(attention.product), inside);
  std::string why = "its operands are of several types, or its heads of free sizes";
  if (problem && attention_tile(*device_, *problem, &why)) return true;
  notes_.push_back("attention '" + graph_.value(graph_.node(attention.product).output).name +
                   "' on " + device_->name + " is several kernels: " + why);
  return false;
}

void Fuser::take_attention() {
  auto users = [&](ValueId v) {
    std::vector<NodeId> ids;
    for (int user : users_[static_cast<size_t>(v.index)])
      ids.push_back(order_[static_cast<size_t>(user)]);
    return ids;
  };
  auto is_output = [&](ValueId v) {
    return static_cast<bool>(outputs_[static_cast<size_t>(v.index)]);
  };
  for (size_t position = 0; position < order_.size(); ++position) {
    if (!get_if<op::Softmax>(&at(static_cast<int>(position)))) continue;
    std::optional<Attention> match = match_attention(graph_, order_[position], users, is_output);
    if (!match || (device_ && !in_blocks(*match))) continue;
    Draft draft;
    for (NodeId id : match->nodes) draft.nodes.insert(position_of_[static_cast<size_t>(id.index)]);
    draft.anchor = position_of_[static_cast<size_t>(match->product.index)];
    bool free = std::all_of(draft.nodes.begin(), draft.nodes.end(),
                            [&](int node) { return is_free(node); });
    if (free && fits(draft.nodes)) accept(std::move(draft));
  }
}

// Takes nodes whose results a product's kernel can compute itself: casts of its operands from short
// floats to f32, and roundings to tf32. Devices want both operands of one type. They copy operands
// of matrix products anyway, so they also take nodes that only move elements.
void Fuser::take_operands(Draft& draft) const {
  const Node& anchor = at(draft.anchor);
  if (!get_if<op::Conv>(&anchor) && !get_if<op::MatMul>(&anchor)) return;
  std::array<ValueId, 2> operands = {anchor.inputs[0], anchor.inputs[1]};
  round_inside(draft.nodes, operands);
  if (device_ && get_if<op::MatMul>(&anchor))
    for (const ValueId operand : operands) move_inside(draft.nodes, operand);
  std::set<int> nodes = draft.nodes;
  for (size_t i = 0; i < 2; ++i) widen_inside(nodes, anchor.inputs[i]);
  const auto source = [&](size_t i) {
    const int maker = maker_of(anchor.inputs[i]);
    return maker >= 0 && nodes.contains(maker)
               ? std::optional(graph_.value(at(maker).inputs[0]).type.dtype)
               : std::nullopt;
  };
  if (!device_ || source(0) == source(1)) draft.nodes = std::move(nodes);
}

// Takes reshapes, transposes and slices in a row that only these nodes read.
void Fuser::move_inside(std::set<int>& nodes, ValueId read) const {
  for (int maker = maker_of(read); maker >= 0 && is_free(maker); maker = maker_of(read)) {
    const Node& node = at(maker);
    const bool moves = get_if<op::Reshape>(&node) || get_if<op::Transpose>(&node) ||
                       get_if<op::Slice>(&node);
    if (!moves || !only_inside(maker, nodes) || graph_.is_constant(node.inputs[0])) return;
    std::set<int> more = nodes;
    more.insert(maker);
    if (!fits(more)) return;
    nodes = std::move(more);
    read = node.inputs[0];
  }
}

// Takes the roundings of both operands if only these nodes read them. `operands` become the values
// that are rounded.
void Fuser::round_inside(std::set<int>& nodes, std::array<ValueId, 2>& operands) const {
  std::set<int> both = nodes;
  for (const ValueId operand : operands) {
    const int maker = maker_of(operand);
    if (maker < 0 || !is_free(maker) || !rounds_to_tf32(at(maker)) || !only_inside(maker, nodes))
      return;
    both.insert(maker);
  }
  if (!fits(both)) return;
  nodes = std::move(both);
  for (ValueId& operand : operands) operand = graph_.def(operand)->inputs[0];
}

// Takes a cast from a short float that only these nodes read: no memory then holds the f32.
void Fuser::widen_inside(std::set<int>& nodes, ValueId read) const {
  const int maker = maker_of(read);
  if (maker >= 0 && is_free(maker) && only_inside(maker, nodes) &&
      (widens_short_float(graph_, at(maker)) || widens_bytes(graph_, at(maker))))
    nodes.insert(maker);
}

// Takes element-wise users in topological order. If the newest node is the only one that is read
// outside, the group can end there: such a state is kept, and the last one stands when a user may
// not join. The first user of the open values comes next, so a region with its diamonds is complete
// before anything behind it is looked at.
void Fuser::grow_behind(Draft& draft) const {
  int anchor = draft.anchor;
  std::set<int> nodes = draft.nodes, pending(users_at(anchor).begin(), users_at(anchor).end());
  if (is_output(anchor)) return;
  while (!pending.empty()) {
    int next = *pending.begin();
    if (!is_free(next) || !is_elementwise(at(next)) || !same_space(next, anchor)) return;
    nodes.insert(next);
    for (ValueId read : at(next).inputs)
      if (const int maker = maker_of(read); maker >= 0 && same_space(maker, anchor))
        widen_inside(nodes, read);
    if (!fits(nodes)) return;
    pending.erase(pending.begin());
    pending.insert(users_at(next).begin(), users_at(next).end());
    bool closed = std::all_of(nodes.begin(), nodes.end(),
                              [&](int node) { return node == next || only_inside(node, nodes); });
    if (closed) draft.nodes = nodes;
    if (is_output(next) || ends_product(anchor, next)) return;
  }
}

// True if each point of the result reads one point of the input, from a place that is computed.
bool picks_points(const Node& node) {
  return std::holds_alternative<op::Take>(node.attrs) ||
         std::holds_alternative<op::Gather>(node.attrs);
}

// Takes element-wise producers over the points that the reduction reads, if nothing else reads
// them, the nearest first. Sums and arg reductions also pick the points that they read.
void Fuser::grow_before_reduction(Draft& draft) const {
  if (is_window(at(draft.anchor))) return;
  int first = maker_of(at(draft.anchor).inputs[0]);
  std::set<int> candidates;
  if (first >= 0) candidates.insert(first);
  while (!candidates.empty()) {
    int next = *candidates.rbegin();
    candidates.erase(next);
    const bool picks = (get_if<op::Reduce>(&at(draft.anchor)) ||
                        get_if<op::ArgReduce>(&at(draft.anchor))) &&
                       picks_points(at(next));
    if (!is_free(next) || (!is_elementwise(at(next)) && !picks) || !same_space(next, first) ||
        !only_inside(next, draft.nodes))
      continue;
    std::set<int> nodes = draft.nodes;
    nodes.insert(next);
    if (!fits(nodes)) continue;
    draft.nodes = nodes;
    if (picks) continue;
    for (ValueId input : at(next).inputs)
      if (int maker = maker_of(input); maker >= 0 && !draft.nodes.contains(maker))
        candidates.insert(maker);
  }
}

// The group's reading of the node at `position`. nullopt if it would compute something expensive
// more than once a point.
std::optional<Fuser::Reading> Fuser::reading_of(int position, const Draft& draft) const {
  ValueId value = at(position).output;
  std::optional<int> mapping;
  bool repeated = false;
  for (int user : users_at(position)) {
    if (!draft.nodes.contains(user)) continue;
    const Reading& reader = readings_[static_cast<size_t>(user)];
    bool same_points = is_elementwise(at(user)) && same_space(position, user);
    bool twice = !is_elementwise(at(user)) &&
                 std::count(at(user).inputs.begin(), at(user).inputs.end(), value) > 1;
    // 0: the points of the group's output; n + 1: the points that the mover at position n reads
    int through = same_points ? reader.mapping : user + 1;
    repeated |= reader.repeated || twice || repeats_points(at(user)) ||
                (is_elementwise(at(user)) && !same_points);
    repeated |= mapping && *mapping != through;
    mapping = through;
  }
  if (repeated && !is_cheap(graph_, at(position))) return std::nullopt;
  return Reading{mapping.value_or(0), repeated};
}

// True for a concat whose parts other kernels can write straight into its memory.
bool Fuser::written_in_place(int position) const {
  const Node& node = at(position);
  if (!std::holds_alternative<op::Concat>(node.attrs) || !is_contiguous(graph_, node)) return false;
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId part) {
    int maker = maker_of(part);
    return maker >= 0 && class_at(maker) != FusionClass::injective;
  });
}

// Takes injective nodes that only the group reads, from its last node backwards.
void Fuser::grow_injective(Draft& draft) {
  std::set<int> candidates;
  auto add_makers = [&](int position) {
    for (ValueId input : at(position).inputs)
      if (int maker = maker_of(input); maker >= 0) candidates.insert(maker);
  };
  add_makers(draft.anchor);
  while (!candidates.empty()) {
    int next = *candidates.rbegin();
    candidates.erase(next);
    if (!is_free(next) || class_at(next) != FusionClass::injective || stands_alone(at(next)) ||
        written_in_place(next) || !only_inside(next, draft.nodes))
      continue;
    if (output_type(next).layout != output_type(draft.anchor).layout) continue;
    std::optional<Reading> reading = reading_of(next, draft);
    std::set<int> nodes = draft.nodes;
    nodes.insert(next);
    if (!reading || !fits(nodes)) continue;
    draft.nodes = nodes;
    readings_[static_cast<size_t>(next)] = *reading;
    add_makers(next);
  }
}

std::vector<Group> Fuser::run() {
  int count = static_cast<int>(order_.size());
  take_attention();
  // Later anchors come first: if two convolutions meet in a residual add, the one that is computed
  // last takes it.
  for (FusionClass round :
       {FusionClass::complex_out, FusionClass::reduction, FusionClass::injective}) {
    for (int position = count - 1; position >= 0; --position) {
      if (!is_free(position) || class_at(position) != round) continue;
      Draft draft{{position}, position};
      if (!stands_alone(at(position)) && !written_in_place(position)) {
        if (round == FusionClass::complex_out) take_operands(draft);
        if (round == FusionClass::injective) grow_injective(draft);
        else grow_behind(draft);
        if (round == FusionClass::reduction) grow_before_reduction(draft);
      }
      accept(std::move(draft));
    }
  }
  for (int position = 0; position < count; ++position)
    if (is_free(position)) accept(Draft{{position}, position});
  std::sort(drafts_.begin(), drafts_.end(),
            [](const Draft& a, const Draft& b) { return *a.nodes.rbegin() < *b.nodes.rbegin(); });
  std::vector<Group> groups;
  for (const Draft& draft : drafts_) {
    Group group;
    for (int position : draft.nodes) group.nodes.push_back(order_[static_cast<size_t>(position)]);
    group.anchor = order_[static_cast<size_t>(draft.anchor)];
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace

std::vector<Group> fuse_groups(const Graph& graph, const Target* device) {
  return Fuser(graph, device && !device->axes.empty() ? device : nullptr).run();
}

std::vector<std::string> attention_notes(const Graph& graph, const Target& device) {
  if (device.axes.empty()) return {};
  return Fuser(graph, &device).notes();
}

}  // namespace tw
