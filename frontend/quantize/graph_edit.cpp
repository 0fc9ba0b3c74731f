#include "frontend/quantize/graph_edit.h"

#include <cstring>

#include "frontend/onnx/proto_read.h"
#include "ir/dtype.h"

namespace tw::onnx_quantize {

GraphIndex::GraphIndex(const onnx::GraphProto& graph) : graph_(graph) {
  for (const onnx::TensorProto& tensor : graph.initializer()) constants_[tensor.name()] = &tensor;
  for (int i = 0; i < graph.node_size(); ++i) {
    for (const std::string& name : graph.node(i).input()) readers_[name].push_back(i);
    for (const std::string& name : graph.node(i).output()) makers_[name] = i;
    kept_.merge(inner_names(graph.node(i)));
  }
  for (const onnx::ValueInfoProto& output : graph.output()) kept_.insert(output.name());
}

std::optional<int> GraphIndex::maker(const std::string& value) const {
  const auto found = makers_.find(value);
  return found == makers_.end() ? std::nullopt : std::optional<int>(found->second);
}

const std::vector<int>& GraphIndex::readers(const std::string& value) const {
  static const std::vector<int> kNone;
  const auto found = readers_.find(value);
  return found == readers_.end() ? kNone : found->second;
}

std::optional<int> GraphIndex::only_reader(const std::string& value) const {
  const std::vector<int>& all = readers(value);
  if (all.size() != 1 || kept_.contains(value)) return std::nullopt;
  return all.front();
}

const onnx::TensorProto* GraphIndex::constant(const std::string& value) const {
  const auto found = constants_.find(value);
  return found == constants_.end() ? nullptr : found->second;
}

const onnx::TensorProto* GraphIndex::float_constant(const std::string& value) const {
  const onnx::TensorProto* tensor = constant(value);
  return tensor && tensor->data_type() == onnx::TensorProto::FLOAT ? tensor : nullptr;
}

std::set<std::string> inner_names(const onnx::NodeProto& node) {
  std::set<std::string> names;
  for (const onnx::GraphProto* graph : onnx_import::inner_graphs(node)) {
    for (const onnx::NodeProto& inner : graph->node()) {
      names.insert(inner.input().begin(), inner.input().end());
      names.merge(inner_names(inner));
    }
    for (const onnx::ValueInfoProto& output : graph->output()) names.insert(output.name());
  }
  return names;
}

FreeNames::FreeNames(const onnx::GraphProto& graph) {
  for (const auto* list : {&graph.input(), &graph.output(), &graph.value_info()})
    for (const onnx::ValueInfoProto& value : *list) taken_.insert(value.name());
  for (const onnx::TensorProto& tensor : graph.initializer()) taken_.insert(tensor.name());
  for (const onnx::NodeProto& node : graph.node()) {
    taken_.insert(node.input().begin(), node.input().end());
    taken_.insert(node.output().begin(), node.output().end());
    taken_.insert(node.name());
    taken_.merge(inner_names(node));
  }
}

std::string FreeNames::make(const std::string& wish) {
  std::string name = wish;
  for (int suffix = 2; !taken_.insert(name).second; ++suffix)
    name = wish + "_" + std::to_string(suffix);
  return name;
}

int64_t elements_of(const onnx::TensorProto& tensor) {
  int64_t count = 1;
  for (const int64_t dim : tensor.dims()) count *= dim;
  return count;
}

namespace {

// An element of an f16 tensor, stored in raw bytes or in words of 32 bits.
float half_at(const onnx::TensorProto& tensor, size_t i) {
  if (!tensor.has_raw_data())
    return f16_to_f32(static_cast<uint16_t>(tensor.int32_data(static_cast<int>(i))));
  uint16_t half = 0;
  std::memcpy(&half, tensor.raw_data().data() + 2 * i, 2);
  return f16_to_f32(half);
}

}  // namespace

// The checker has ensured that the sizes fit.
std::vector<float> floats_of(const onnx::TensorProto& tensor) {
  std::vector<float> values(static_cast<size_t>(elements_of(tensor)));
  if (tensor.data_type() == onnx::TensorProto::FLOAT16) {
    const size_t stored = tensor.has_raw_data() ? tensor.raw_data().size() / 2
                                                : static_cast<size_t>(tensor.int32_data_size());
    for (size_t i = 0; i < std::min(stored, values.size()); ++i) values[i] = half_at(tensor, i);
    return values;
  }
  if (tensor.has_raw_data())
    std::memcpy(values.data(), tensor.raw_data().data(),
                std::min(tensor.raw_data().size(), values.size() * sizeof(float)));
  else
    std::copy_n(tensor.float_data().begin(),
                std::min<size_t>(values.size(), static_cast<size_t>(tensor.float_data_size())),
                values.begin());
  return values;
}

void add_bytes(onnx::GraphProto& graph, const std::string& name, int type,
               const std::vector<int64_t>& dims, std::string bytes) {
  onnx::TensorProto& tensor = *graph.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(type);
  for (const int64_t dim : dims) tensor.add_dims(dim);
  tensor.set_raw_data(std::move(bytes));
}

void add_floats(onnx::GraphProto& graph, const std::string& name, const std::vector<int64_t>& dims,
                std::span<const float> values) {
  add_bytes(graph, name, onnx::TensorProto::FLOAT, dims,
            {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

onnx::NodeProto make_node(const std::string& op, const std::vector<std::string>& inputs,
                          const std::string& output) {
  onnx::NodeProto node;
  node.set_op_type(op);
  node.set_name(output);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(output);
  return node;
}

void set_integer(onnx::NodeProto& node, const std::string& name, int64_t value) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
}

int64_t integer_of(const onnx::NodeProto& node, const std::string& name, int64_t otherwise) {
  for (const onnx::AttributeProto& attribute : node.attribute())
    if (attribute.name() == name) return attribute.i();
  return otherwise;
}

float real_of(const onnx::NodeProto& node, const std::string& name, float otherwise) {
  for (const onnx::AttributeProto& attribute : node.attribute())
    if (attribute.name() == name) return attribute.f();
  return otherwise;
}

bool is_op(const onnx::NodeProto& node, std::string_view op) {
  return node.op_type() == op && (node.domain().empty() || node.domain() == "ai.onnx");
}

void drop_unread(onnx::GraphProto& graph) {
  std::set<std::string> read;
  for (const onnx::NodeProto& node : graph.node()) {
    read.insert(node.input().begin(), node.input().end());
    read.merge(inner_names(node));
  }
  for (const onnx::ValueInfoProto& output : graph.output()) read.insert(output.name());
  auto& constants = *graph.mutable_initializer();
  constants.erase(std::remove_if(constants.begin(), constants.end(),
                                 [&](const auto& t) { return !read.contains(t.name()); }),
                  constants.end());
}

}  // namespace tw::onnx_quantize
