// Files in the quantizer's form: all tensors inside, floats of 32 bits.
#include <functional>

#include "frontend/mapped_file.h"
#include "frontend/onnx/proto_read.h"
#include "frontend/quantize/prepare.h"
#include "ir/dtype.h"

namespace tw::onnx_quantize {
namespace {

using OnTensor = std::function<Error(onnx::TensorProto&)>;

Error each_tensor(onnx::GraphProto& graph, const OnTensor& fn) {
  for (onnx::TensorProto& tensor : *graph.mutable_initializer()) TW_TRY(fn(tensor));
  for (onnx::NodeProto& node : *graph.mutable_node())
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_t()) TW_TRY(fn(*attribute.mutable_t()));
      if (attribute.has_g()) TW_TRY(each_tensor(*attribute.mutable_g(), fn));
      for (onnx::GraphProto& inner : *attribute.mutable_graphs()) TW_TRY(each_tensor(inner, fn));
    }
  return Error::success();
}

void widen_type(onnx::ValueInfoProto& value, bool& changed) {
  onnx::TypeProto_Tensor* type = value.mutable_type()->has_tensor_type()
                                     ? value.mutable_type()->mutable_tensor_type()
                                     : nullptr;
  if (!type || type->elem_type() != onnx::TensorProto::FLOAT16) return;
  type->set_elem_type(onnx::TensorProto::FLOAT);
  changed = true;
}

// Widens the types that values and attributes name, in inner graphs too.
void widen_types(onnx::GraphProto& graph, bool& changed) {
  for (auto* list : {graph.mutable_input(), graph.mutable_output(), graph.mutable_value_info()})
    for (onnx::ValueInfoProto& value : *list) widen_type(value, changed);
  for (onnx::NodeProto& node : *graph.mutable_node())
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      const bool names_type = attribute.name() == "to" || attribute.name() == "dtype" ||
                              attribute.name() == "output_dtype";
      if (names_type && attribute.i() == onnx::TensorProto::FLOAT16) {
        attribute.set_i(onnx::TensorProto::FLOAT);
        changed = true;
      }
      if (attribute.has_g()) widen_types(*attribute.mutable_g(), changed);
      for (onnx::GraphProto& inner : *attribute.mutable_graphs()) widen_types(inner, changed);
    }
}

}  // namespace

Error take_inside(onnx::ModelProto& model, std::shared_ptr<const MappedFile> file,
                  const std::string& path) {
  onnx_import::ExternalData external(std::move(file), path);
  return each_tensor(*model.mutable_graph(), [&](onnx::TensorProto& tensor) -> Error {
    if (tensor.data_location() != onnx::TensorProto::EXTERNAL) return Error::success();
    TW_ASSIGN(const onnx_import::OnnxTensor read, onnx_import::read_tensor(tensor, external));
    const auto bytes = read.data.bytes;
    tensor.clear_external_data();
    tensor.clear_data_location();
    tensor.set_raw_data(bytes.data(), bytes.size());
    return Error::success();
  });
}

bool widen_halves(onnx::ModelProto& model) {
  bool changed = false;
  const auto widen = [&](onnx::TensorProto& tensor) -> Error {
    if (tensor.data_type() != onnx::TensorProto::FLOAT16) return Error::success();
    const std::vector<float> values = floats_of(tensor);
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    tensor.clear_int32_data();
    tensor.set_raw_data(values.data(), values.size() * sizeof(float));
    changed = true;
    return Error::success();
  };
  llvm::cantFail(each_tensor(*model.mutable_graph(), widen));
  widen_types(*model.mutable_graph(), changed);
  return changed;
}

}  // namespace tw::onnx_quantize
