// Protobuf messages to our own structs. Only included by files that know protobuf.
#pragma once
#include <onnx/onnx_pb.h>

#include "frontend/onnx/external_data.h"
#include "frontend/onnx/onnx_model.h"

namespace tw::onnx_import {

// Element types without a DType keep their dims but no data. Errors: invalid_model (sizes that do
// not fit together), io.
Expected<OnnxTensor> read_tensor(const onnx::TensorProto& proto, ExternalData& external);

// Inputs, outputs, initializers and nodes, with the graphs in their attributes, which the proto
// gives up as they are read: forests are large. opsets: domain -> version. How deep graphs nest was
// bounded when the skeleton was copied.
Expected<OnnxGraph> read_graph(onnx::GraphProto& graph,
                               const std::map<std::string, int64_t>& opsets,
                               ExternalData& external);

// The since-version of the node's operator; 0 when the library has none or it is deprecated there.
int since_version(const onnx::NodeProto& node, const std::map<std::string, int64_t>& opsets);

// Those in its attributes: bodies and branches.
std::vector<const onnx::GraphProto*> inner_graphs(const onnx::NodeProto& node);
std::vector<onnx::GraphProto*> inner_graphs(onnx::NodeProto& node);

}  // namespace tw::onnx_import
