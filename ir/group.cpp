// The text of `--emit=groups`: one block for each group, in the order in which the kernels run.
//
//   group 3 complex_out (%x, %w, %b, %zero) -> %y: f32[1, 8, 6, 6]
//     %c = conv(%x, %w, %b) pads=[1,1,1,1]
//     %y = binary(%zero, %c) function=max
//
// An algorithm other than the direct one follows the class: "group 3 complex_out winograd_f4 (...".
#include <algorithm>

#include "ir/group.h"

namespace tw {
namespace {

const char* class_name(FusionClass fusion) {
  switch (fusion) {
    case FusionClass::injective: return "injective";
    case FusionClass::reduction: return "reduction";
    case FusionClass::complex_out: return "complex_out";
    case FusionClass::opaque: return "opaque";
  }
  TW_UNREACHABLE("bad fusion class");
}

std::string list(const Graph& graph, const std::vector<ValueId>& values) {
  std::string text;
  for (ValueId value : values) {
    if (!text.empty()) text += ", ";
    text += value.valid() ? "%" + graph.value(value).name : "none";
  }
  return "(" + text + ")";
}

// The values that the group reads from outside, in order of first use
std::vector<ValueId> external_inputs(const Graph& graph, const Group& group) {
  std::vector<ValueId> inputs;
  for (NodeId id : group.nodes)
    for (ValueId input : graph.node(id).inputs) {
      bool inside = !input.valid() || std::find(group.nodes.begin(), group.nodes.end(),
                                                graph.value(input).def) != group.nodes.end();
      if (!inside && std::find(inputs.begin(), inputs.end(), input) == inputs.end())
        inputs.push_back(input);
    }
  return inputs;
}

}  // namespace

std::string group_name(const Graph& graph, const Group& group) {
  std::string name;
  for (const NodeId id : group.nodes) {
    const Node& node = graph.node(id);
    const std::string& own = node.name.empty() ? graph.value(node.output).name : node.name;
    if (name.find(own) == std::string::npos) name += (name.empty() ? "" : "+") + own;
  }
  return name;
}

std::string print_groups(const Graph& graph, const std::vector<Group>& groups) {
  std::string text;
  for (size_t i = 0; i < groups.size(); ++i) {
    const Group& group = groups[i];
    const Node& anchor = graph.node(group.anchor);
    const std::vector<ValueId> outputs = graph.node(group.nodes.back()).outputs();
    std::string made;
    for (ValueId v : outputs)
      made += (made.empty() ? "%" : ", %") + graph.value(v).name + ": " +
              to_string(graph.value(v).type);
    text += llvm::formatv("group {0} {1}{2} {3} -> {4}\n", i,
                          class_name(op_info(anchor.attrs).fusion),
                          group.algorithm == Algorithm::direct
                              ? ""
                              : std::string(" ") + algorithm_name(group.algorithm),
                          list(graph, external_inputs(graph, group)), made)
                .str();
    for (NodeId id : group.nodes) {
      const Node& node = graph.node(id);
      text += llvm::formatv("  %{0} = {1}{2}{3}\n", graph.value(node.output).name,
                            op_info(node.attrs).name, list(graph, node.inputs),
                            print_attrs(node.attrs))
                  .str();
    }
  }
  return text;
}

const char* algorithm_name(Algorithm a) {
  switch (a) {
    case Algorithm::direct: return "direct";
    case Algorithm::winograd_f2: return "winograd_f2";
    case Algorithm::winograd_f4: return "winograd_f4";
    case Algorithm::winograd_f6: return "winograd_f6";
    case Algorithm::strassen: return "strassen";
  }
  TW_UNREACHABLE("bad algorithm");
}

std::optional<Algorithm> algorithm_from_name(std::string_view name) {
  for (int i = 0; i < kAlgorithmCount; ++i)
    if (name == algorithm_name(static_cast<Algorithm>(i))) return static_cast<Algorithm>(i);
  return std::nullopt;
}

int winograd_tile(Algorithm a) {
  switch (a) {
    case Algorithm::winograd_f2: return 2;
    case Algorithm::winograd_f4: return 4;
    case Algorithm::winograd_f6: return 6;
    case Algorithm::direct:
    case Algorithm::strassen: return 0;
  }
  TW_UNREACHABLE("bad algorithm");
}

bool is_extern(const Graph& graph, const Group& group) {
  return has_several_outputs(graph.node(group.anchor).attrs);
}

bool is_elementwise(const Node& node) {
  return std::holds_alternative<op::Unary>(node.attrs) ||
         std::holds_alternative<op::Binary>(node.attrs) ||
         std::holds_alternative<op::Select>(node.attrs) ||
         std::holds_alternative<op::Cast>(node.attrs) ||
         std::holds_alternative<op::Quantize>(node.attrs) ||
         std::holds_alternative<op::Dequantize>(node.attrs) ||
         std::holds_alternative<op::Lookup>(node.attrs);
}

std::vector<Group> single_groups(const Graph& graph) {
  std::vector<Group> groups;
  for (const NodeId id : graph.order()) groups.push_back({{id}, id});
  return groups;
}

}  // namespace tw
