// Loading: a mapped file becomes a checked OnnxModel. Every call into the ONNX library is guarded,
// as it reports problems by exceptions.
#include <onnx/checker.h>
#include <onnx/common/constants.h>
#include <onnx/defs/schema.h>
#include <onnx/inliner/inliner.h>
#include <onnx/shape_inference/implementation.h>
#include <onnx/version_converter/convert.h>

#include <algorithm>
#include <functional>
#include <set>

#include "frontend/onnx/functions.h"
#include "frontend/onnx/guarded.h"
#include "frontend/onnx/import_table.h"
#include "frontend/onnx/proto_read.h"
#include "frontend/onnx/skeleton.h"
#include "frontend/onnx/sparse.h"

namespace tw::onnx_import {
namespace {

// Models with operators older than their importers are converted to this opset. It is the newest
// one without newer quantized types and attributes that no importer reads.
constexpr int kBaseOpset = 22;
constexpr int kMaxNodes = 200'000;
// From this version on, initializers need not be inputs; the converter makes such initializers
constexpr int kMinIrVersion = 4;
constexpr const char* kUnknownDomain = "tilewright.unknown";
using Opsets = std::map<std::string, int64_t>;

// Calls fn for the graph and all graphs in attributes of its nodes, outer ones first.
void for_each_graph(onnx::GraphProto& graph, const std::function<void(onnx::GraphProto&)>& fn) {
  fn(graph);
  for (auto& node : *graph.mutable_node())
    for (onnx::GraphProto* inner : inner_graphs(node)) for_each_graph(*inner, fn);
}

// Calls fn for the main graph, the graphs in functions, and all graphs in attributes of nodes.
void for_each_graph(onnx::ModelProto& model, const std::function<void(onnx::GraphProto&)>& fn) {
  for_each_graph(*model.mutable_graph(), fn);
  for (auto& function : *model.mutable_functions()) {
    for (auto& node : *function.mutable_node())
      for (onnx::GraphProto* inner : inner_graphs(node)) for_each_graph(*inner, fn);
    for (auto& attribute : *function.mutable_attribute_proto())
      if (attribute.has_g()) for_each_graph(*attribute.mutable_g(), fn);
  }
}

void for_each_node(onnx::ModelProto& model, const std::function<void(onnx::NodeProto&)>& fn) {
  for_each_graph(model, [&](onnx::GraphProto& graph) {
    for (auto& node : *graph.mutable_node()) fn(node);
  });
  for (auto& function : *model.mutable_functions())
    for (auto& node : *function.mutable_node()) fn(node);
}

// Hides external files behind aliases, as the ONNX checker would look for them in the working
// folder.
void hide_locations(onnx::ModelProto& model, ExternalData& external) {
  const auto hide = [&](onnx::TensorProto& tensor) {
    for (auto& entry : *tensor.mutable_external_data())
      if (entry.key() == "location" && entry.value() != kModelLocation)
        entry.set_value(external.alias(entry.value()));
  };
  const auto hide_sparse = [&](onnx::SparseTensorProto& sparse) {
    hide(*sparse.mutable_values());
    hide(*sparse.mutable_indices());
  };
  const auto hide_in = [&](onnx::AttributeProto& attribute) {
    if (attribute.has_t()) hide(*attribute.mutable_t());
    if (attribute.has_sparse_tensor()) hide_sparse(*attribute.mutable_sparse_tensor());
    for (auto& tensor : *attribute.mutable_tensors()) hide(tensor);
  };
  for_each_graph(model, [&](onnx::GraphProto& graph) {
    std::ranges::for_each(*graph.mutable_initializer(), hide);
    std::ranges::for_each(*graph.mutable_sparse_initializer(), hide_sparse);
  });
  for (auto& function : *model.mutable_functions())
    std::ranges::for_each(*function.mutable_attribute_proto(), hide_in);
  for_each_node(model, [&](onnx::NodeProto& node) {
    std::ranges::for_each(*node.mutable_attribute(), hide_in);
  });
}

Opsets opsets_of(const onnx::ModelProto& model) {
  Opsets opsets;
  for (const auto& opset : model.opset_import()) opsets[opset.domain()] = opset.version();
  return opsets;
}

// Makes the domain "ai.onnx" "", a missing opset 1, and a newer file format the newest known one.
void normalize(onnx::ModelProto& model) {
  const auto plain = [](std::string* domain) {
    if (*domain == "ai.onnx") domain->clear();
  };
  for (auto& opset : *model.mutable_opset_import()) plain(opset.mutable_domain());
  for (auto& function : *model.mutable_functions())
    for (auto& opset : *function.mutable_opset_import()) plain(opset.mutable_domain());
  for (auto& function : *model.mutable_functions()) plain(function.mutable_domain());
  for_each_node(model, [&](onnx::NodeProto& node) { plain(node.mutable_domain()); });
  if (model.opset_import().empty()) model.add_opset_import()->set_version(1);
  if (model.ir_version() > onnx::IR_VERSION) model.set_ir_version(onnx::IR_VERSION);
  if (model.ir_version() > 0 && model.ir_version() < kMinIrVersion)
    model.set_ir_version(kMinIrVersion);
}

Error check_limits(onnx::ModelProto& model) {
  int64_t nodes = 0;
  for_each_node(model, [&](onnx::NodeProto&) { ++nodes; });
  if (nodes > kMaxNodes)
    return make_error(DiagCode::limit, "the model has {0} nodes, the limit is {1}", nodes,
                      kMaxNodes);
  return Error::success();
}

// Completes the types that the checker wants of every input and output. Types of outputs are
// inferred later, and the importer reports an input without one.
void complete(google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& values) {
  for (onnx::ValueInfoProto& value : values) {
    onnx::TypeProto& type = *value.mutable_type();
    if (type.value_case() == onnx::TypeProto::VALUE_NOT_SET ||
        (type.has_tensor_type() && type.tensor_type().elem_type() == 0))
      type.mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
    if (type.has_tensor_type()) type.mutable_tensor_type()->mutable_shape();
  }
}

// The checker stops at the first unknown operator. Such operators belong in the gap report, so they
// get a custom domain during the check.
Error check(onnx::ModelProto& model) {
  const Opsets opsets = opsets_of(model);
  std::set<std::pair<std::string, std::string>> functions;
  for (const auto& function : model.functions())
    functions.emplace(function.domain(), function.name());
  std::vector<std::pair<onnx::NodeProto*, std::string>> hidden;
  for_each_node(model, [&](onnx::NodeProto& node) {
    const auto opset = opsets.find(node.domain());
    if (opset == opsets.end() || functions.count({node.domain(), node.op_type()})) return;
    const int version = static_cast<int>(std::min<int64_t>(opset->second, INT32_MAX));
    const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(node.op_type(), version,
                                                                  node.domain());
    if (schema && !schema->Deprecated()) return;
    hidden.emplace_back(&node, node.domain());
    node.set_domain(kUnknownDomain);
  });
  if (!hidden.empty()) {
    auto* opset = model.add_opset_import();
    opset->set_domain(kUnknownDomain);
    opset->set_version(1);
    for (auto& function : *model.mutable_functions()) *function.add_opset_import() = *opset;
  }
  onnx::GraphProto& graph = *model.mutable_graph();
  const auto inputs = graph.input(), outputs = graph.output();
  complete(*graph.mutable_input());
  complete(*graph.mutable_output());
  Error error = guarded("not a valid ONNX model", [&] { onnx::checker::check_model(model); });
  *graph.mutable_input() = inputs;
  *graph.mutable_output() = outputs;
  for (auto& [node, domain] : hidden) node->set_domain(domain);
  if (!hidden.empty()) {
    model.mutable_opset_import()->RemoveLast();
    for (auto& function : *model.mutable_functions()) function.mutable_opset_import()->RemoveLast();
  }
  return error;
}

// Converts upward. A failure is not fatal: operators that stay too old appear in the gap report.
void convert(onnx::ModelProto& model) {
  llvm::consumeError(guarded("conversion", [&] {
    onnx::ModelProto converted = onnx::version_conversion::ConvertVersion(model, kBaseOpset);
    model.Swap(&converted);
  }));
}

bool is_old(const onnx::ModelProto& model) {
  const Opsets opsets = opsets_of(model);
  const auto opset = opsets.find("");
  return opset != opsets.end() && opset->second < kBaseOpset;
}

// True if an importer knows only newer versions of an operator.
bool has_old_operators(onnx::ModelProto& model) {
  const Opsets opsets = opsets_of(model);
  bool found = false;
  for_each_node(model, [&](onnx::NodeProto& node) {
    const ImportRow* row = find_importer_any_version(node.domain(), node.op_type());
    found = found || (row && since_version(node, opsets) < row->first);
  });
  return found;
}

const onnx::OpSchema* schema_of(const onnx::NodeProto& node, const Opsets& opsets) {
  const auto opset = opsets.find(node.domain());
  if (opset == opsets.end()) return nullptr;
  return onnx::OpSchemaRegistry::Schema(
      node.op_type(), static_cast<int>(std::min<int64_t>(opset->second, INT32_MAX)), node.domain());
}

// The nodes without an importer that ONNX defines as a function of other operators.
std::vector<onnx::NodeProto*> expandable(onnx::ModelProto& model) {
  const Opsets opsets = opsets_of(model);
  std::vector<onnx::NodeProto*> found;
  for_each_node(model, [&](onnx::NodeProto& node) {
    const onnx::OpSchema* schema = schema_of(node, opsets);
    if (schema && (schema->HasFunction() || schema->HasContextDependentFunction()) &&
        !find_importer(node.domain(), node.op_type(), schema->since_version()))
      found.push_back(&node);
  });
  return found;
}

// Adds default attributes, which the body of a function may name.
void fill_defaults(onnx::NodeProto& node, const onnx::OpSchema& schema) {
  for (const auto& [name, attribute] : schema.attributes()) {
    bool given = attribute.default_value.name().empty();
    for (const auto& present : node.attribute()) given = given || present.name() == name;
    if (!given) *node.add_attribute() = attribute.default_value;
  }
}

// Adds the type of every value, as bodies that depend on types need them. The library looks for
// types in the main graph only, so those of inner graphs are copied there, except for names that
// several graphs use.
void add_types(onnx::ModelProto& model) {
  for_each_graph(*model.mutable_graph(), [](onnx::GraphProto& graph) {
    for (const auto& tensor : graph.initializer()) {
      auto* info = graph.add_value_info();
      info->set_name(tensor.name());
      auto* type = info->mutable_type()->mutable_tensor_type();
      type->set_elem_type(tensor.data_type());
      type->mutable_shape();
      for (int64_t dim : tensor.dims()) type->mutable_shape()->add_dim()->set_dim_value(dim);
    }
  });
  onnx::shape_inference::InferShapes(model);
  std::map<std::string, int> makers;
  std::vector<onnx::ValueInfoProto> inner;
  for_each_graph(*model.mutable_graph(), [&](onnx::GraphProto& graph) {
    std::set<std::string> own;
    for (const auto* list : {&graph.input(), &graph.output(), &graph.value_info()})
      for (const auto& info : *list) {
        if (own.insert(info.name()).second) ++makers[info.name()];
        if (&graph != model.mutable_graph()) inner.push_back(info);
      }
  });
  for (const onnx::ValueInfoProto& info : inner)
    if (makers[info.name()] == 1) *model.mutable_graph()->add_value_info() = info;
  // The library also looks up omitted optional inputs, whose name is empty.
  model.mutable_graph()->add_value_info()->mutable_type();
}

// Bodies are written for recent opsets, and may use operators that have bodies themselves.
void expand_bodies(onnx::ModelProto& model) {
  constexpr int kRounds = 4;
  constexpr size_t kMaxWork = 10'000'000;  // the library infers all types anew for each expansion
  for (int round = 0; round < kRounds; ++round) {
    std::vector<onnx::NodeProto*> nodes = expandable(model);
    if (nodes.empty()) return;
    if (is_old(model)) {
      convert(model);
      nodes = expandable(model);
    }
    if (nodes.size() * static_cast<size_t>(model.graph().node_size()) > kMaxWork) return;
    const Opsets opsets = opsets_of(model);
    std::set<std::pair<std::string, std::string>> names;
    for (onnx::NodeProto* node : nodes) {
      fill_defaults(*node, *schema_of(*node, opsets));
      names.emplace(node->domain(), node->op_type());
    }
    Error error = guarded("expanding function bodies", [&] {
      onnx::ModelProto copy = model;
      add_types(copy);
      const auto set = onnx::inliner::FunctionIdSet::Create({names.begin(), names.end()});
      onnx::inliner::InlineSelectedFunctions(copy, *set, onnx::OpSchemaRegistry::Instance());
      model.Swap(&copy);
    });
    const bool failed = static_cast<bool>(error);
    llvm::consumeError(std::move(error));
    if (failed) return;  // the operators stay, and the gap report has them
  }
}

// The model's properties, up to a size that suits a manifest.
std::map<std::string, std::string> metadata_of(const onnx::ModelProto& proto) {
  constexpr size_t kMostBytes = 64 << 10;
  std::map<std::string, std::string> out;
  size_t bytes = 0;
  for (const auto& property : proto.metadata_props()) {
    bytes += property.key().size() + property.value().size();
    if (bytes <= kMostBytes) out[property.key()] = property.value();
  }
  return out;
}

Error prepare(onnx::ModelProto& proto, ExternalData& external, OnnxModel& model) {
  TW_TRY(check_limits(proto));
  normalize(proto);
  hide_locations(proto, external);
  TW_TRY(check(proto));
  for (const auto& node : proto.graph().node()) ++model.op_counts[node.op_type()];
  model.opset = opsets_of(proto)[""];
  model.producer = proto.producer_name() +
                   (proto.producer_version().empty() ? "" : " " + proto.producer_version());
  model.metadata = metadata_of(proto);
  TW_TRY(inline_functions(proto, kMaxNodes));
  TW_TRY(make_dense(proto, external));
  if (is_old(proto) && has_old_operators(proto)) convert(proto);
  expand_bodies(proto);
  return check_limits(proto);
}

Error parse(const MappedFile& file, onnx::ModelProto& proto) {
  TW_ASSIGN(const std::string skeleton, copy_skeleton(file.text()));
  bool parsed = false;
  TW_TRY(guarded("not an ONNX file", [&] { parsed = proto.ParseFromString(skeleton); }));
  if (!parsed)
    return make_error(DiagCode::invalid_model, "not an ONNX file: it does not parse as a model");
  if (!proto.has_graph())
    return make_error(DiagCode::invalid_model, "not an ONNX model: it has no graph");
  return Error::success();
}

}  // namespace

int newest_onnx_opset() {
  return onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map().at("").second;
}

Expected<std::vector<std::string>> external_paths(const std::shared_ptr<const MappedFile>& file,
                                                  const std::string& path) {
  onnx::ModelProto proto;
  TW_TRY(parse(*file, proto));
  ExternalData external(file, path);
  hide_locations(proto, external);
  return external.paths();
}

Expected<OnnxModel> load_model(const std::shared_ptr<const MappedFile>& file,
                               const std::string& path) {
  OnnxModel model;
  onnx::ModelProto proto;
  TW_TRY(parse(*file, proto));
  ExternalData external(file, path);
  TW_TRY(prepare(proto, external, model));
  TW_ASSIGN(model.graph, read_graph(*proto.mutable_graph(), opsets_of(proto), external));
  return model;
}

}  // namespace tw::onnx_import
