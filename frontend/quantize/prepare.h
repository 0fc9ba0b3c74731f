// An ONNX file as it is before it is quantized: checked, of opset 13 at least, its constants
// initializers, its batch normalizations inside of convolutions.
#pragma once
#include <onnx/onnx_pb.h>

#include "support/diag.h"

namespace tw::onnx_quantize {

Expected<onnx::ModelProto> load_prepared(const std::string& path);

// Each by itself, for tests.
void fold_batch_norms(onnx::GraphProto& graph);

}  // namespace tw::onnx_quantize
