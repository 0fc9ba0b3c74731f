#include "frontend/quantize/quantizable_model.h"

#include <algorithm>
#include <cmath>

#include "frontend/quantize/plan.h"
#include "frontend/quantize/prepare.h"
#include "frontend/quantize/refine.h"
#include "frontend/quantize/write_qdq.h"
#include "ir/dim_names.h"

namespace tw {

using namespace onnx_quantize;

ScaleAndZero scale_of(ValueRange range, bool signed_values) {
  const double least = std::min(range.least, 0.0), most = std::max(range.most, 0.0);
  auto scale = static_cast<float>((most - least) / 255);
  if (!std::isnormal(scale)) scale = 1;
  const int lowest = signed_values ? -128 : 0;
  const double zero = std::nearbyint(lowest - least / scale);
  return {scale, static_cast<int>(std::clamp(zero, double{0} + lowest, 255.0 + lowest))};
}

struct QuantizableModel::Data {
  onnx::ModelProto model;
};

Expected<QuantizableModel> QuantizableModel::open(const std::string& path) {
  auto data = std::make_shared<Data>();
  TW_ASSIGN(data->model, load_prepared(path));
  QuantizableModel model;
  model.data_ = std::move(data);
  return model;
}

void QuantizableModel::bind(const std::map<std::string, int64_t>& dims) {
  onnx::GraphProto& graph = *data_->model.mutable_graph();
  for (auto* list : {graph.mutable_input(), graph.mutable_output(), graph.mutable_value_info()})
    for (onnx::ValueInfoProto& value : *list) {
      if (!value.type().tensor_type().has_shape()) continue;
      size_t axis = 0;
      for (onnx::TensorShapeProto::Dimension& dim :
           *value.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim()) {
        const std::string place = dim_at(value.name(), axis++);
        const auto size = dims.find(dim.dim_param().empty() ? place : dim.dim_param());
        if (!dim.has_dim_value() && size != dims.end()) dim.set_dim_value(size->second);
      }
    }
}

std::vector<QuantLayer> QuantizableModel::layers() const {
  const onnx::GraphProto& graph = data_->model.graph();
  const GraphIndex index(graph);
  std::vector<QuantLayer> list;
  for (const int i : products(graph)) {
    const onnx::NodeProto& node = graph.node(i);
    const onnx::TensorProto* weights = index.float_constant(node.input(1));
    list.push_back({node.name().empty() ? node.output(0) : node.name(), node.op_type(),
                    weights ? elements_of(*weights) : 0, node.input(0)});
  }
  return list;
}

bool QuantizableModel::widen_halves() {
  if (!onnx_quantize::widen_halves(data_->model)) return false;
  fold_batch_norms(*data_->model.mutable_graph());
  return true;
}

Error QuantizableModel::fits_file() const {
  constexpr size_t kMost = size_t{1} << 31;  // limit of a protobuf message
  if (const size_t size = data_->model.ByteSizeLong(); size >= kMost)
    return make_error(
        DiagCode::limit,
        "the model has {0} bytes with all its weights inside, and one ONNX file holds "
        "less than 2 GiB",
        size);
  return Error::success();
}

Expected<std::string> QuantizableModel::bytes() const {
  TW_TRY(fits_file());
  return data_->model.SerializeAsString();
}

std::vector<std::string> QuantizableModel::observed() const {
  std::vector<std::string> values;
  for (const auto& [value, group] : make_plan(data_->model.graph(), {}).group_of)
    values.push_back(value);
  return values;
}

ValueRanges QuantizableModel::shared(const ValueRanges& ranges) const {
  const QuantPlan plan = make_plan(data_->model.graph(), {});
  const ValueRanges of_group = group_ranges(plan, ranges);
  ValueRanges result = ranges;
  for (const auto& [value, group] : plan.group_of) result[value] = of_group.at(group);
  return result;
}

std::string QuantizableModel::observing(const std::vector<std::string>& values) const {
  onnx::ModelProto model = data_->model;
  onnx::GraphProto& graph = *model.mutable_graph();
  FreeNames names(graph);
  for (const std::string& value : values) {
    const std::string name = names.make(value + "_observed");
    *graph.add_node() = make_node("Identity", {value}, name);
    onnx::ValueInfoProto& output = *graph.add_output();
    output.set_name(name);
    // ONNX requires a shape of every output; the nodes decide it
    output.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
    output.mutable_type()->mutable_tensor_type()->mutable_shape();
  }
  return model.SerializeAsString();
}

std::string QuantizableModel::quantized(const ValueRanges& ranges, const QdqForm& form) const {
  onnx::ModelProto model = data_->model;
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.clear_value_info();
  if (!form.means.empty()) correct_biases(graph, form);
  write_qdq(graph, make_plan(graph, form.floats), ranges, form);
  return model.SerializeAsString();
}

int QuantizableModel::equalize() { return equalize_layers(*data_->model.mutable_graph()); }

std::vector<std::string> QuantizableModel::balanceable() const {
  return balanceable_values(data_->model.graph());
}

int QuantizableModel::balance(const ChannelValues& largest) {
  return balance_channels(*data_->model.mutable_graph(), largest);
}

PackedWeights QuantizableModel::pack_weights(const BlockForm& form) {
  return onnx_quantize::pack_weights(data_->model, form);
}

}  // namespace tw
