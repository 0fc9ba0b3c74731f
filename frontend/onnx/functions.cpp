// The ONNX library expands the calls. It ignores default attributes and overloads. It wants a node
// of the body to make each output. It mixes up the names of a caller's graph with those of the
// function that gets the graph. So each kind of call first gets a function of its own (a variant)
// without any of these.
#include "frontend/onnx/functions.h"

#include <onnx/checker.h>
#include <onnx/inliner/inliner.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "frontend/onnx/guarded.h"
#include "frontend/onnx/proto_read.h"

namespace tw::onnx_import {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;
using Names = google::protobuf::RepeatedPtrField<std::string>;

constexpr int64_t kMaxBytes = int64_t{1} << 30;  // for all nodes with their attributes

class Functions {
 public:
  explicit Functions(const onnx::ModelProto& model) {
    for (const auto& function : model.functions())
      by_name_[{function.domain(), function.name(), function.overload()}] = &function;
  }
  const onnx::FunctionProto* called(const onnx::NodeProto& node) const {
    const auto found = by_name_.find({node.domain(), node.op_type(), node.overload()});
    return found == by_name_.end() ? nullptr : found->second;
  }

 private:
  std::map<std::tuple<std::string, std::string, std::string>, const onnx::FunctionProto*> by_name_;
};

bool has_attribute(const onnx::NodeProto& node, const std::string& name) {
  return std::ranges::any_of(node.attribute(), [&](const auto& a) { return a.name() == name; });
}

bool is_graph(const onnx::AttributeProto& attribute) {
  return attribute.type() == onnx::AttributeProto::GRAPH ||
         attribute.type() == onnx::AttributeProto::GRAPHS;
}

// The number of nodes, and their bytes, once all calls are expanded.
class ExpandedSize {
 public:
  ExpandedSize(const Functions& functions, int64_t max_nodes)
      : functions_(functions), max_nodes_(max_nodes) {}

  struct Size {
    int64_t nodes = 0, bytes = 0;
  };
  Size of(const Nodes& nodes) { return of(nodes, {}); }
  bool within(const Size& size) const {
    return size.nodes <= max_nodes_ && size.bytes <= kMaxBytes && steps_ <= max_nodes_;
  }

 private:
  using Handed = std::map<std::string, Size>;  // graphs with which a function is called

  void add(Size& to, const Size& size) const {
    to.nodes = std::min(to.nodes + size.nodes, max_nodes_ + 1);
    to.bytes = std::min(to.bytes + size.bytes, kMaxBytes + 1);
  }
  Size of(const Nodes& nodes, const Handed& handed) {
    Size sum;
    for (const onnx::NodeProto& node : nodes) {
      if (!within(sum)) break;
      add(sum, of(node, handed));
    }
    return sum;
  }
  Size of(const onnx::AttributeProto& attribute, const Handed& handed) {
    Size sum;
    if (const auto found = handed.find(attribute.ref_attr_name()); found != handed.end())
      add(sum, found->second);
    if (attribute.has_g()) add(sum, of(attribute.g().node(), handed));
    for (const onnx::GraphProto& graph : attribute.graphs()) add(sum, of(graph.node(), handed));
    return sum;
  }
  Size of(const onnx::NodeProto& node, const Handed& handed) {
    ++steps_;
    Size size{1, static_cast<int64_t>(node.ByteSizeLong())};
    const onnx::FunctionProto* function = functions_.called(node);
    Handed inner;
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      const Size held = of(attribute, handed);
      if (function && held.nodes > 0) inner[attribute.name()] = held;
      add(size, held);
    }
    if (!function) return size;
    for (const onnx::AttributeProto& attribute : function->attribute_proto())
      if (!has_attribute(node, attribute.name())) {
        add(size, {0, static_cast<int64_t>(attribute.ByteSizeLong())});
        if (is_graph(attribute)) inner[attribute.name()] = of(attribute, {});
      }
    if (!inner.empty()) {
      add(size, of(function->node(), inner));
      return size;
    }
    const auto known = alone_.find(function);
    add(size,
        known != alone_.end() ? known->second : alone_[function] = of(function->node(), inner));
    return size;
  }

  const Functions& functions_;
  const int64_t max_nodes_;
  int64_t steps_ = 0;
  std::map<const onnx::FunctionProto*, Size> alone_;  // functions called without graphs
};

// Removes references to attributes that the call does not have.
void drop_references(Nodes& nodes, const std::set<std::string>& absent) {
  for (onnx::NodeProto& node : nodes) {
    auto& attributes = *node.mutable_attribute();
    for (auto at = attributes.begin(); at != attributes.end();)
      at = absent.count(at->ref_attr_name()) ? attributes.erase(at) : at + 1;
    for (onnx::GraphProto* graph : inner_graphs(node))
      drop_references(*graph->mutable_node(), absent);
  }
}

void rename_values(Nodes& nodes, const std::string& prefix) {
  const auto rename = [&](std::string& name) {
    if (!name.empty()) name = prefix + name;
  };
  for (onnx::NodeProto& node : nodes) {
    std::ranges::for_each(*node.mutable_input(), rename);
    std::ranges::for_each(*node.mutable_output(), rename);
    for (onnx::GraphProto* graph : inner_graphs(node)) {
      for (auto* values : {graph->mutable_input(), graph->mutable_output()})
        for (onnx::ValueInfoProto& value : *values) rename(*value.mutable_name());
      for (onnx::TensorProto& tensor : *graph->mutable_initializer())
        rename(*tensor.mutable_name());
      rename_values(*graph->mutable_node(), prefix);
    }
  }
}

void make_outputs(Nodes& nodes, const std::vector<std::string*>& outputs);
void make_outputs(onnx::GraphProto& graph) {
  std::vector<std::string*> outputs;
  for (onnx::ValueInfoProto& output : *graph.mutable_output())
    outputs.push_back(output.mutable_name());
  make_outputs(*graph.mutable_node(), outputs);
}

// Adds an Identity for each output that no node of the body makes, or that occurs a second time.
void make_outputs(Nodes& nodes, const std::vector<std::string*>& outputs) {
  std::set<std::string> own, names;
  for (onnx::NodeProto& node : nodes) {
    own.insert(node.output().begin(), node.output().end());
    names.insert(node.input().begin(), node.input().end());
    for (onnx::GraphProto* graph : inner_graphs(node)) make_outputs(*graph);
  }
  names.insert(own.begin(), own.end());
  for (const std::string* output : outputs) names.insert(*output);
  for (std::string* output : outputs) {
    if (own.erase(*output)) continue;
    onnx::NodeProto& node = *nodes.Add();
    node.set_op_type("Identity");
    node.add_input(*output);
    do *output += "_out";
    while (!names.insert(*output).second);
    node.add_output(*output);
  }
}

class Variants {
 public:
  Variants(const Functions& functions, const onnx::ModelProto& model) : functions_(functions) {
    for (const auto& function : model.functions()) taken_.insert(function.name());
  }

  void settle(Nodes& nodes) {
    for (onnx::NodeProto& node : nodes) {
      const onnx::FunctionProto* function = functions_.called(node);
      if (function) fill_defaults(node, *function);
      for (onnx::GraphProto* graph : inner_graphs(node)) {
        if (function) make_outputs(*graph);
        settle(*graph->mutable_node());
      }
      if (!function) continue;
      node.set_op_type(variant(node, *function));
      node.clear_overload();
    }
  }

  std::vector<onnx::FunctionProto> release() { return std::move(made_); }

 private:
  static void fill_defaults(onnx::NodeProto& node, const onnx::FunctionProto& function) {
    for (const onnx::AttributeProto& attribute : function.attribute_proto())
      if (!has_attribute(node, attribute.name())) *node.add_attribute() = attribute;
  }

  // The name of the function's variant for this call.
  std::string variant(const onnx::NodeProto& node, const onnx::FunctionProto& function) {
    std::set<std::string> absent;
    for (const std::string& name : function.attribute())
      if (!name.empty() && !has_attribute(node, name)) absent.insert(name);
    const bool graphs = std::ranges::any_of(node.attribute(), is_graph);
    const auto [known, fresh] = names_.try_emplace({&function, absent, graphs});
    if (!fresh) return known->second;
    std::string name = function.name();
    if (!absent.empty() || graphs || !function.overload().empty()) {
      do {
        name = function.name() + "_" + std::to_string(++numbers_[function.name()]);
      } while (!taken_.insert(name).second);
    }
    known->second = name;
    onnx::FunctionProto own = function;
    own.set_name(name);
    own.clear_overload();
    drop_references(*own.mutable_node(), absent);
    std::vector<std::string*> outputs;
    for (std::string& output : *own.mutable_output()) outputs.push_back(&output);
    make_outputs(*own.mutable_node(), outputs);
    if (graphs) rename_all(own);
    settle(*own.mutable_node());
    made_.push_back(std::move(own));
    return name;
  }

  // Renames the values so that they differ from all names of a caller's graph.
  static void rename_all(onnx::FunctionProto& function) {
    const std::string prefix = function.domain() + "." + function.name() + ":";
    for (Names* names : {function.mutable_input(), function.mutable_output()})
      for (std::string& name : *names) name = prefix + name;
    rename_values(*function.mutable_node(), prefix);
  }

  const Functions& functions_;
  std::map<std::tuple<const onnx::FunctionProto*, std::set<std::string>, bool>, std::string> names_;
  std::set<std::string> taken_;
  std::map<std::string, int> numbers_;
  std::vector<onnx::FunctionProto> made_;
};

}  // namespace

Error inline_functions(onnx::ModelProto& model, int64_t max_nodes) {
  if (model.functions().empty()) return Error::success();
  TW_TRY(
      guarded("model-local functions", [&] { onnx::checker::check_function_call_cycles(model); }));
  const Functions functions(model);
  ExpandedSize expanded(functions, max_nodes);
  if (!expanded.within(expanded.of(model.graph().node())))
    return make_error(DiagCode::limit,
                      "the model has more than {0} nodes, or more than 1 GiB of them, with its "
                      "functions expanded",
                      max_nodes);
  Variants variants(functions, model);
  variants.settle(*model.mutable_graph()->mutable_node());
  std::vector<onnx::FunctionProto> made = variants.release();
  model.clear_functions();
  for (onnx::FunctionProto& function : made) *model.add_functions() = std::move(function);
  return guarded("expanding the model's functions",
                 [&] { onnx::inliner::InlineLocalFunctions(model, true); });
}

}  // namespace tw::onnx_import
