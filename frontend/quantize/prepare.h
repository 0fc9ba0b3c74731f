// An ONNX file as it is before it is quantized: checked, of opset 13 at least, its constants
// initializers, its batch normalizations inside of convolutions.
#pragma once
#include <onnx/onnx_pb.h>

#include "frontend/mapped_file.h"
#include "frontend/quantize/graph_edit.h"
#include "support/diag.h"

namespace tw::onnx_quantize {

Expected<onnx::ModelProto> load_prepared(const std::string& path);
// Tensors that lie in other files beside the model's.
Error take_inside(onnx::ModelProto& model, std::shared_ptr<const MappedFile> file,
                  const std::string& path);
// Tensors, values and casts of f16 become f32; whether there were any.
bool widen_halves(onnx::ModelProto& model);

// Each by itself, for tests.
void fold_batch_norms(onnx::GraphProto& graph);

}  // namespace tw::onnx_quantize
