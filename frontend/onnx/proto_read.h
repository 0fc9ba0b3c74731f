// Conversion of protobuf messages to our own structs. Only files that know protobuf include this
// header.
#pragma once
#include <onnx/onnx_pb.h>

#include "frontend/onnx/external_data.h"
#include "frontend/onnx/onnx_model.h"

namespace tw::onnx_import {

// A tensor whose element type has no DType keeps its dims but no data. Errors: invalid_model (sizes
// that do not fit together), io.
Expected<OnnxTensor> read_tensor(const onnx::TensorProto& proto, ExternalData& external);

// Reads inputs, outputs, initializers and nodes, with the graphs in their attributes. The proto
// gives up what has been read, as tree ensembles are large. `opsets` maps a domain to its version.
// The nesting of graphs is bounded, as copy_skeleton limits it.
Expected<OnnxGraph> read_graph(onnx::GraphProto& graph,
                               const std::map<std::string, int64_t>& opsets,
                               ExternalData& external);

// The since-version of the node's operator; 0 if the library does not have it or it is deprecated.
int since_version(const onnx::NodeProto& node, const std::map<std::string, int64_t>& opsets);

// The graphs in the node's attributes: bodies and branches.
std::vector<const onnx::GraphProto*> inner_graphs(const onnx::NodeProto& node);
std::vector<onnx::GraphProto*> inner_graphs(onnx::NodeProto& node);

}  // namespace tw::onnx_import
