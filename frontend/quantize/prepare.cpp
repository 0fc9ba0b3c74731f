#include "frontend/quantize/prepare.h"

#include <onnx/checker.h>
#include <onnx/version_converter/convert.h>

#include <cmath>

#include "frontend/mapped_file.h"
#include "frontend/quantize/graph_edit.h"

namespace tw::onnx_quantize {
namespace {

constexpr int64_t kLeastOpset = 13;  // first opset with scales along an axis
constexpr int64_t kLeastFormat = 7;  // the file format of that opset

Error raise_opset(onnx::ModelProto& model, const std::string& path) {
  int64_t opset = 1;
  for (const onnx::OperatorSetIdProto& entry : model.opset_import())
    if (entry.domain().empty() || entry.domain() == "ai.onnx") opset = entry.version();
  if (opset < kLeastOpset) try {
      onnx::ModelProto raised = onnx::version_conversion::ConvertVersion(model, kLeastOpset);
      *raised.mutable_metadata_props() = model.metadata_props();
      model.Swap(&raised);
    } catch (const std::exception& e) {
      return make_error(DiagCode::unsupported,
                        "'{0}' is of opset {1}, scales by channel need {2}, and it cannot be "
                        "converted: {3}; export it with opset {2} or later",
                        path, opset, kLeastOpset, e.what());
    }
  model.set_ir_version(std::max<int64_t>(model.ir_version(), kLeastFormat));
  return Error::success();
}

// Old files list initializers as inputs too, as a caller could replace them.
void unlist_constants(onnx::GraphProto& graph) {
  const GraphIndex index(graph);
  auto& inputs = *graph.mutable_input();
  inputs.erase(std::remove_if(inputs.begin(), inputs.end(),
                              [&](const auto& v) { return index.constant(v.name()); }),
               inputs.end());
}

void lift_constants(onnx::GraphProto& graph) {
  auto& nodes = *graph.mutable_node();
  for (onnx::NodeProto& node : nodes) {
    if (!is_op(node, "Constant") || node.attribute_size() != 1 || !node.attribute(0).has_t())
      continue;
    onnx::TensorProto& tensor = *graph.add_initializer();
    tensor = node.attribute(0).t();
    tensor.set_name(node.output(0));
    node.clear_output();
  }
  nodes.erase(
      std::remove_if(nodes.begin(), nodes.end(), [](const auto& n) { return n.output().empty(); }),
      nodes.end());
}

struct Norm {
  std::vector<float> scale, shift, mean, variance;
  float epsilon = 0;
};

std::optional<Norm> norm_of(const GraphIndex& index, const onnx::NodeProto& node) {
  if (!is_op(node, "BatchNormalization") || node.input_size() != 5 || node.output_size() != 1 ||
      integer_of(node, "training_mode", 0) != 0)
    return std::nullopt;
  std::vector<float> parts[4];
  for (int i = 0; i < 4; ++i) {
    const onnx::TensorProto* tensor = index.float_constant(node.input(i + 1));
    if (!tensor) return std::nullopt;
    parts[i] = floats_of(*tensor);
    if (parts[i].size() != parts[0].size()) return std::nullopt;
  }
  return Norm{parts[0], parts[1], parts[2], parts[3], real_of(node, "epsilon", 1e-5f)};
}

// Folds the norm's factors into the output channels of the convolution in front. Returns false if
// it cannot.
bool fold_norm(onnx::GraphProto& graph, FreeNames& names, int at) {
  const GraphIndex index(graph);
  const std::optional<Norm> norm = norm_of(index, graph.node(at));
  const auto maker = norm ? index.maker(graph.node(at).input(0)) : std::nullopt;
  if (!maker || index.only_reader(graph.node(at).input(0)) != at) return false;
  onnx::NodeProto& conv = *graph.mutable_node(*maker);
  const bool transposed = is_op(conv, "ConvTranspose");
  if (!is_op(conv, "Conv") && !(transposed && integer_of(conv, "group", 1) == 1)) return false;
  const onnx::TensorProto* weights = index.float_constant(conv.input(1));
  const bool biased = conv.input_size() > 2 && !conv.input(2).empty();
  const onnx::TensorProto* bias = biased ? index.float_constant(conv.input(2)) : nullptr;
  const int axis = transposed ? 1 : 0;
  if (!weights || (biased && !bias) || weights->dims_size() < 3) return false;
  const auto channels = static_cast<size_t>(weights->dims(axis));
  if (channels != norm->scale.size()) return false;
  std::vector<float> w = floats_of(*weights), b = bias ? floats_of(*bias) : std::vector<float>();
  b.resize(channels);
  const std::vector<int64_t> dims(weights->dims().begin(), weights->dims().end());
  size_t inner = 1;
  for (size_t i = static_cast<size_t>(axis) + 1; i < dims.size(); ++i)
    inner *= static_cast<size_t>(dims[i]);
  std::vector<double> factor(channels);
  for (size_t c = 0; c < channels; ++c) {
    factor[c] = norm->scale[c] / std::sqrt(double{norm->variance[c]} + norm->epsilon);
    b[c] = static_cast<float>((double{b[c]} - norm->mean[c]) * factor[c] + norm->shift[c]);
  }
  for (size_t i = 0; i < w.size(); ++i)
    w[i] = static_cast<float>(w[i] * factor[i / inner % channels]);
  const std::string w_name = names.make(conv.input(1) + "_folded");
  const std::string b_name = names.make((biased ? conv.input(2) : conv.output(0)) + "_bias");
  add_floats(graph, w_name, dims, w);
  add_floats(graph, b_name, {static_cast<int64_t>(channels)}, b);
  conv.set_input(1, w_name);
  while (conv.input_size() < 3) conv.add_input("");
  conv.set_input(2, b_name);
  conv.set_output(0, graph.node(at).output(0));
  graph.mutable_node()->DeleteSubrange(at, 1);
  return true;
}

}  // namespace

void fold_batch_norms(onnx::GraphProto& graph) {
  FreeNames names(graph);
  for (int i = 0; i < graph.node_size();)
    if (!is_op(graph.node(i), "BatchNormalization") || !fold_norm(graph, names, i)) ++i;
  drop_unread(graph);
}

Expected<onnx::ModelProto> load_prepared(const std::string& path) {
  TW_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  onnx::ModelProto model;
  if (!model.ParseFromString(std::string(file->text())) || !model.has_graph())
    return make_error(DiagCode::invalid_model, "'{0}' is not an ONNX model", path);
  TW_TRY(take_inside(model, file, path));
  try {
    onnx::checker::check_model(model);
  } catch (const std::exception& e) {
    return make_error(DiagCode::invalid_model, "'{0}' is not a valid ONNX model: {1}", path,
                      e.what());
  }
  unlist_constants(*model.mutable_graph());
  TW_TRY(raise_opset(model, path));
  unlist_constants(*model.mutable_graph());
  lift_constants(*model.mutable_graph());
  fold_batch_norms(*model.mutable_graph());
  return model;
}

}  // namespace tw::onnx_quantize
