#include "tests/fuzz/sized_model.h"

#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace tw::fuzz {
namespace {

using onnx::TensorProto;

constexpr int kMostNodes = 24, kMostDepth = 2;

// Kinds of values:
//   f floats   v a list of integers   s an integer   m a table of integers
//   b a list of truths   c a truth   q a sequence of floats
constexpr std::string_view kKinds = "fvsmbc";

struct Made {
  std::string name;
  char kind;
};

struct Step {
  const char* op;
  const char* operands;         // one kind each; '-': left out; '*': any kind
  const char* results;          // one kind each; '=': the first operand's kind
  const char* attributes = "";  // "axis=0,1 mode=nearest,linear": takes one value of each list
};

constexpr Step kSteps[] = {
    {"NonZero", "*", "m"},
    {"Compress", "fb", "f", "axis=0,1,-1"},
    {"Compress", "vb", "v", "axis=0"},
    {"Range", "sss", "v"},
    {"Slice", "fvvvv", "f"},
    {"Slice", "fvv", "f"},
    {"Slice", "vvvv", "v"},
    {"Tile", "fv", "f"},
    {"Tile", "vv", "v"},
    {"Expand", "fv", "f"},
    {"Expand", "sv", "f"},
    {"ConstantOfShape", "v", "f"},
    {"Reshape", "fv", "f", "allowzero=0,1"},
    {"Reshape", "mv", "v"},
    {"Concat", "ff", "f", "axis=0,1,-1"},
    {"Concat", "vv", "v", "axis=0"},
    {"Concat", "mm", "m", "axis=0,1"},
    {"Resize", "f--v", "f", "mode=nearest,linear,cubic"},
    {"Resize", "f-f", "f", "mode=nearest,linear"},
    {"NonMaxSuppression", "ffsff", "m"},
    {"Unique", "f", "fvvv", "axis=0,1"},
    {"Unique", "v", "vvvv", "sorted=0,1"},
    {"Shape", "*", "v", "start=0,1,-1"},
    {"Size", "*", "s"},
    {"Gather", "fv", "f", "axis=0,1"},
    {"Gather", "vs", "s", "axis=0"},
    {"Gather", "vv", "v", "axis=0"},
    {"Gather", "mv", "m", "axis=0,1"},
    {"GatherND", "fm", "f"},
    {"ScatterND", "fmf", "f"},
    {"Transpose", "m", "m"},
    {"Transpose", "f", "f"},
    {"Add", "vv", "v"},
    {"Sub", "vv", "v"},
    {"Mul", "vv", "v"},
    {"Div", "vv", "v"},
    {"Mod", "vv", "v"},
    {"Max", "vv", "v"},
    {"Min", "vv", "v"},
    {"Neg", "v", "v"},
    {"Add", "ss", "s"},
    {"Sub", "ss", "s"},
    {"Mul", "ss", "s"},
    {"Div", "ss", "s"},
    {"Max", "ss", "s"},
    {"Min", "ss", "s"},
    {"Add", "ff", "f"},
    {"Mul", "ff", "f"},
    {"MatMul", "ff", "f"},
    {"Relu", "f", "f"},
    {"Softmax", "f", "f", "axis=0,-1"},
    {"Cast", "f", "v", "to=7"},
    {"Cast", "v", "f", "to=1"},
    {"Cast", "b", "v", "to=7"},
    {"Cast", "c", "s", "to=7"},
    {"Where", "bvv", "v"},
    {"Where", "bff", "f"},
    {"Equal", "vv", "b"},
    {"Less", "vv", "b"},
    {"Less", "ss", "c"},
    {"Squeeze", "v", "s"},
    {"Unsqueeze", "sv", "v"},
    {"Unsqueeze", "fv", "f"},
    {"Flatten", "f", "f", "axis=0,1,2"},
    {"ReduceSum", "v-", "s", "keepdims=0"},
    {"ReduceMax", "v-", "s", "keepdims=0"},
    {"ReduceProd", "v-", "s", "keepdims=0"},
    {"ReduceMean", "fv", "f", "keepdims=0,1"},
    {"ArgMax", "f", "m", "axis=0,1 keepdims=0,1"},
    {"ArgMax", "v", "s", "axis=0 keepdims=0"},
    {"TopK", "fv", "fm", "axis=0,1,-1"},
    {"TopK", "vv", "vv", "axis=0"},
    {"Pad", "fv", "f", "mode=constant,edge,reflect,wrap"},
    {"Split", "fv", "ff", "axis=0,1"},
    {"Split", "vv", "vv"},
    {"SplitToSequence", "fv", "q", "axis=0,1"},
    {"SequenceAt", "qs", "f"},
    {"SequenceInsert", "qf", "q"},
    {"SequenceErase", "qs", "q"},
    {"SequenceConstruct", "ff", "q"},
    {"SequenceLength", "q", "s"},
    {"ConcatFromSequence", "q", "f", "axis=0,1 new_axis=0,1"},
    {"OneHot", "vsf", "f"},
    {"EyeLike", "f", "f", "k=0,1,-3"},
    {"Trilu", "fs", "f"},
    {"CumSum", "fs", "f"},
    {"CumSum", "vs", "v"},
    {"ReverseSequence", "fv", "f", "batch_axis=1 time_axis=0"},
    {"Col2Im", "fvv", "f"},
    {"MaxUnpool", "ffv", "f", "kernel_shape=2"},
    {"CenterCropPad", "fv", "f"},
    {"BlackmanWindow", "s", "f"},
    {"Identity", "*", "="},
};

// Sets an attribute to one value of its list, an integer or else a text.
void add_attribute(std::string_view words, Choices& choices, onnx::NodeProto& node) {
  const size_t equals = words.find('=');
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(std::string(words.substr(0, equals)));
  std::vector<std::string> values;
  std::istringstream list{std::string(words.substr(equals + 1))};
  for (std::string value; std::getline(list, value, ',');) values.push_back(value);
  const std::string& chosen = choices.one_of(values);
  if (attribute.name() == "kernel_shape") {
    attribute.set_type(onnx::AttributeProto::INTS);
    for (int i = 0; i < 2; ++i) attribute.add_ints(std::stoll(chosen));
  } else if (chosen.find_first_not_of("-0123456789") == std::string::npos) {
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(std::stoll(chosen));
  } else {
    attribute.set_type(onnx::AttributeProto::STRING);
    attribute.set_s(chosen);
  }
}

bool is_scalar(char kind) { return kind == 's' || kind == 'c'; }
TensorProto::DataType type_of(char kind) {
  if (kind == 'f' || kind == 'q') return TensorProto::FLOAT;
  return kind == 'b' || kind == 'c' ? TensorProto::BOOL : TensorProto::INT64;
}

class Builder {
 public:
  explicit Builder(Choices& choices) : choices_(choices) {}

  onnx::ModelProto build() {
    onnx::ModelProto model;
    model.set_ir_version(10);
    model.add_opset_import()->set_version(21);
    onnx::GraphProto& graph = *model.mutable_graph();
    graph.set_name("sizes");
    graph_ = &graph;
    add_inputs(graph);
    std::vector<Made> values = inputs_;
    add_nodes(graph, values, 0);
    const size_t outputs = 1 + choices_.below(3);
    for (size_t i = 0; i < std::min(outputs, values.size() - inputs_.size()); ++i)
      add_output(graph, values[values.size() - 1 - i]);
    return model;
  }

 private:
  void add_input(onnx::GraphProto& graph, const char* name, char kind,
                 const std::vector<const char*>& dims) {
    onnx::ValueInfoProto& info = *graph.add_input();
    info.set_name(name);
    auto& type = *info.mutable_type()->mutable_tensor_type();
    type.set_elem_type(type_of(kind));
    type.mutable_shape();
    for (const std::string_view dim : dims)
      if (dim.find_first_not_of("0123456789") == std::string_view::npos)
        type.mutable_shape()->add_dim()->set_dim_value(std::stoll(std::string(dim)));
      else type.mutable_shape()->add_dim()->set_dim_param(std::string(dim));
    inputs_.push_back({name, kind});
  }

  void add_inputs(onnx::GraphProto& graph) {
    add_input(graph, "x", 'f', {"n", "3"});
    add_input(graph, "y", 'f', {"2", "3", "4", "5"});
    add_input(graph, "p", 'f', {"a", "b"});
    add_input(graph, "boxes", 'f', {"1", "r", "4"});
    add_input(graph, "scores", 'f', {"1", "1", "r"});
    add_input(graph, "i", 'v', {"4"});
    add_input(graph, "j", 'v', {"k"});
    add_input(graph, "s", 's', {});
    add_input(graph, "t", 's', {});
    add_input(graph, "u", 'b', {"n"});
    add_input(graph, "c", 'c', {});
  }

  std::string fresh() { return "t" + std::to_string(count_++); }

  std::string constant(char kind) {
    TensorProto& tensor = *graph_->add_initializer();
    tensor.set_name(fresh());
    tensor.set_data_type(type_of(kind));
    const auto length = static_cast<int64_t>(1 + choices_.below(4));
    if (kind == 'm') tensor.add_dims(2);
    if (kind == 'f' && choices_.below(2) == 0) tensor.add_dims(3);
    if (!is_scalar(kind)) tensor.add_dims(length);
    int64_t elements = 1;
    for (const int64_t dim : tensor.dims()) elements *= dim;
    for (int64_t i = 0; i < elements; ++i)
      if (kind == 'f') tensor.add_float_data(static_cast<float>(choices_.below(9)) / 2 - 1);
      else if (type_of(kind) == TensorProto::BOOL)
        tensor.add_int32_data(static_cast<int32_t>(choices_.below(2)));
      else tensor.add_int64_data(number(choices_));
    return tensor.name();
  }

  // Returns a value of the kind, preferably a late one, or now and then a constant.
  std::string operand(char kind, const std::vector<Made>& values) {
    const size_t chosen = choices_.next();
    std::vector<const Made*> fitting;
    for (const Made& value : values)
      if (value.kind == kind) fitting.push_back(&value);
    if (kind != 'q' && (chosen % 4 == 0 || fitting.empty())) return constant(kind);
    if (fitting.empty()) return "";
    return fitting[fitting.size() - 1 - chosen / 4 % fitting.size()]->name;
  }

  void add_nodes(onnx::GraphProto& graph, std::vector<Made>& values, int depth) {
    const int most = depth == 0 ? kMostNodes : 4;
    for (int n = 0; n < most && choices_.more(); ++n) {
      const size_t chosen = choices_.below(std::size(kSteps) + 6);
      if (chosen < std::size(kSteps)) add_step(graph, values, kSteps[chosen]);
      else if (depth < kMostDepth && chosen % 2) add_if(graph, values, depth);
      else if (depth < kMostDepth) add_loop(graph, values, depth);
    }
  }

  void add_step(onnx::GraphProto& graph, std::vector<Made>& values, const Step& step) {
    onnx::NodeProto& node = *graph.add_node();
    node.set_op_type(step.op);
    char first = 0;
    for (const char* kind = step.operands; *kind; ++kind) {
      const char k = *kind == '*' ? choices_.one_of(kKinds) : *kind;
      first = first ? first : k;
      node.add_input(k == '-' ? "" : operand(k, values));
    }
    std::istringstream attributes(step.attributes);
    for (std::string words; attributes >> words;) add_attribute(words, choices_, node);
    for (const char* kind = step.results; *kind; ++kind) {
      node.add_output(fresh());
      values.push_back({node.output(node.output_size() - 1), *kind == '=' ? first : *kind});
    }
  }

  static void add_output(onnx::GraphProto& graph, const Made& made) {
    onnx::ValueInfoProto& info = *graph.add_output();
    info.set_name(made.name);
    onnx::TypeProto& type = *info.mutable_type();
    if (made.kind == 'q')
      type.mutable_sequence_type()->mutable_elem_type()->mutable_tensor_type()->set_elem_type(
          TensorProto::FLOAT);
    else type.mutable_tensor_type()->set_elem_type(type_of(made.kind));
  }

  // Makes the last value of the kind an output of the graph, through a node of its own.
  void add_result(onnx::GraphProto& graph, const std::vector<Made>& values, char kind) {
    const auto last = std::find_if(values.rbegin(), values.rend(),
                                   [&](const Made& value) { return value.kind == kind; });
    onnx::NodeProto& node = *graph.add_node();
    node.set_op_type("Identity");
    node.add_input(last == values.rend() ? constant(kind) : last->name);
    node.add_output(fresh());
    add_output(graph, {node.output(0), kind});
  }

  onnx::GraphProto& body_of(onnx::NodeProto& node, const char* name) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::GRAPH);
    attribute.mutable_g()->set_name(fresh());
    return *attribute.mutable_g();
  }

  void add_if(onnx::GraphProto& graph, std::vector<Made>& values, int depth) {
    onnx::NodeProto node;
    node.set_op_type("If");
    const char kind = choices_.one_of(kKinds);
    node.add_input(operand('c', values));
    for (const char* branch : {"then_branch", "else_branch"}) {
      onnx::GraphProto& body = body_of(node, branch);
      std::vector<Made> inner = values;
      add_nodes(body, inner, depth + 1);
      add_result(body, inner, kind);
    }
    finish(graph, values, node, std::string_view(&kind, 1));
  }

  void add_loop(onnx::GraphProto& graph, std::vector<Made>& values, int depth) {
    onnx::NodeProto node;
    node.set_op_type("Loop");
    const char carried = choices_.one_of(kKinds), listed = choices_.one_of(kKinds);
    node.add_input(choices_.below(4) == 0 ? "" : operand('s', values));
    node.add_input(choices_.below(2) == 0 ? "" : operand('c', values));
    node.add_input(operand(carried, values));
    onnx::GraphProto& body = body_of(node, "body");
    std::vector<Made> inner = values;
    for (const char kind : {'s', 'c', carried}) {
      onnx::ValueInfoProto& info = *body.add_input();
      info.set_name(fresh());
      auto& type = *info.mutable_type()->mutable_tensor_type();
      type.set_elem_type(type_of(kind));
      if (is_scalar(kind)) type.mutable_shape();
      inner.push_back({info.name(), kind});
    }
    add_nodes(body, inner, depth + 1);
    for (const char kind : {'c', carried, listed}) add_result(body, inner, kind);
    const char results[] = {carried, listed == 's' ? 'v' : listed == 'c' ? 'b' : 'f'};
    finish(graph, values, node, std::string_view(results, listed == 'v' ? 1 : 2));
  }

  void finish(onnx::GraphProto& graph, std::vector<Made>& values, onnx::NodeProto& node,
              std::string_view kinds) {
    for (const char kind : kinds) {
      node.add_output(fresh());
      values.push_back({node.output(node.output_size() - 1), kind});
    }
    *graph.add_node() = std::move(node);
  }

  Choices& choices_;
  onnx::GraphProto* graph_ = nullptr;  // the main graph, which holds all constants
  std::vector<Made> inputs_;
  int count_ = 0;
};

}  // namespace

int64_t number(Choices& choices) {
  constexpr int64_t kNumbers[] = {0,
                                  1,
                                  2,
                                  3,
                                  4,
                                  -1,
                                  -2,
                                  5,
                                  7,
                                  64,
                                  1000,
                                  -1000,
                                  1 << 20,
                                  INT32_MAX,
                                  int64_t{INT32_MAX} + 1,
                                  int64_t{1} << 33,
                                  int64_t{1} << 40,
                                  int64_t{1} << 61,
                                  int64_t{1} << 62,
                                  INT64_MAX,
                                  INT64_MIN};
  return choices.one_of(kNumbers);
}

onnx::ModelProto sized_model(Choices& choices) { return Builder(choices).build(); }

}  // namespace tw::fuzz
