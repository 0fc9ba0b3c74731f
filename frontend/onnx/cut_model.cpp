// Cutting of an ONNX model: some of its nodes form a smaller model, with inputs in place of the
// other nodes' values. Bodies (If, Loop) go whole with their nodes.
#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>

#include <algorithm>
#include <map>
#include <set>

#include "frontend/frontend.h"
#include "frontend/mapped_file.h"
#include "frontend/onnx/proto_read.h"

namespace tw {
namespace {

// The values that the node reads, those inside its graphs included.
std::set<std::string> read_by(const onnx::NodeProto& node) {
  std::set<std::string> names(node.input().begin(), node.input().end());
  for (const onnx::GraphProto* graph : onnx_import::inner_graphs(node)) {
    for (const onnx::NodeProto& inner : graph->node()) names.merge(read_by(inner));
    for (const onnx::ValueInfoProto& output : graph->output()) names.insert(output.name());
  }
  names.erase("");
  return names;
}

using Sizes = std::map<std::string, int64_t>;

// Replaces names of dims by their sizes. `used` gets the names that occur.
void bind(onnx::ValueInfoProto& value, const Sizes& dims, std::set<std::string>& used) {
  if (!value.type().tensor_type().has_shape()) return;
  for (onnx::TensorShapeProto::Dimension& dim :
       *value.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim()) {
    const auto size = dims.find(dim.dim_param());
    if (dim.dim_param().empty() || size == dims.end()) continue;
    used.insert(size->first);
    dim.set_dim_value(size->second);
  }
}

}  // namespace

struct CutModel::Data {
  onnx::ModelProto model;
  // Types of inputs and of nodes' results, if inference finds them
  std::map<std::string, onnx::ValueInfoProto> known;
  std::map<std::string, const onnx::TensorProto*> weights;
  std::vector<std::set<std::string>> reads;  // by node
};

Expected<CutModel> CutModel::open(const std::string& path,
                                  const std::map<std::string, int64_t>& dims) {
  TW_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  auto data = std::make_shared<Data>();
  if (!data->model.ParseFromString(std::string(file->text())) || !data->model.has_graph())
    return make_error(DiagCode::invalid_model, "'{0}' is not an ONNX model", path);
  std::set<std::string> used;
  onnx::GraphProto& graph = *data->model.mutable_graph();
  for (auto* list : {graph.mutable_input(), graph.mutable_output(), graph.mutable_value_info()})
    for (onnx::ValueInfoProto& value : *list) bind(value, dims, used);
  for (const auto& [name, size] : dims)
    if (!used.contains(name))
      return make_error(DiagCode::invalid_argument, "'{0}' has no dimension '{1}'", path, name);
  onnx::ModelProto inferred = data->model;
  try {
    onnx::shape_inference::InferShapes(inferred);
  } catch (const std::exception& e) {
    return make_error(DiagCode::invalid_model, "types of '{0}' cannot be inferred: {1}", path,
                      e.what());
  }
  for (const auto* list :
       {&inferred.graph().input(), &inferred.graph().value_info(), &inferred.graph().output()})
    for (const onnx::ValueInfoProto& info : *list)
      if (info.type().tensor_type().has_shape()) data->known.emplace(info.name(), info);
  for (const onnx::TensorProto& tensor : data->model.graph().initializer()) {
    if (tensor.data_location() == onnx::TensorProto::EXTERNAL)
      return make_error(DiagCode::unsupported,
                        "'{0}' has weights in another file ('{1}'): store them inside", path,
                        tensor.name());
    data->weights[tensor.name()] = &tensor;
  }
  for (const onnx::NodeProto& node : data->model.graph().node())
    data->reads.push_back(read_by(node));
  CutModel cut;
  cut.data_ = std::move(data);
  return cut;
}

size_t CutModel::node_count() const { return data_->reads.size(); }

std::string CutModel::operators(const std::vector<size_t>& nodes) const {
  std::string text;
  for (size_t i : nodes)
    text += (text.empty() ? "" : " ") + data_->model.graph().node(static_cast<int>(i)).op_type();
  return text;
}

std::optional<std::string> CutModel::cut(const std::vector<size_t>& nodes) const {
  const onnx::GraphProto& graph = data_->model.graph();
  std::set<std::string> made, read, given;
  onnx::ModelProto smaller = data_->model;
  onnx::GraphProto& target = *smaller.mutable_graph();
  target.clear_node();
  target.clear_input();
  target.clear_output();
  target.clear_initializer();
  target.clear_value_info();
  for (size_t i : nodes) {
    *target.add_node() = graph.node(static_cast<int>(i));
    for (const std::string& name : data_->reads[i])
      if (!made.count(name)) read.insert(name);
    made.insert(graph.node(static_cast<int>(i)).output().begin(),
                graph.node(static_cast<int>(i)).output().end());
  }
  for (const std::string& name : read) {
    const auto known = data_->known.find(name);
    if (const auto weight = data_->weights.find(name); weight != data_->weights.end())
      *target.add_initializer() = *weight->second;
    else if (known != data_->known.end()) *target.add_input() = known->second;
    else if (std::any_of(graph.node().begin(), graph.node().end(), [&](const auto& n) {
               return std::count(n.output().begin(), n.output().end(), name) > 0;
             }))
      return std::nullopt;  // an unknown type; names that no node makes belong to bodies
  }
  for (size_t i : nodes) given.insert(data_->reads[i].begin(), data_->reads[i].end());
  made.erase("");
  for (const std::string& name : made) {
    if (given.count(name)) continue;
    const auto known = data_->known.find(name);
    if (known == data_->known.end()) return std::nullopt;
    *target.add_output() = known->second;
  }
  return smaller.SerializeAsString();
}

}  // namespace tw
