// Preparation of an ONNX file for quantization: it is checked, has at least opset 13, its constants
// are initializers, and its batch normalizations are folded into convolutions.
#pragma once
#include <onnx/onnx_pb.h>

#include "frontend/mapped_file.h"
#include "frontend/quantize/graph_edit.h"
#include "support/diag.h"

namespace tw::onnx_quantize {

Expected<onnx::ModelProto> load_prepared(const std::string& path);
// Takes in tensors from files beside the model's.
Error take_inside(onnx::ModelProto& model, std::shared_ptr<const MappedFile> file,
                  const std::string& path);
// Turns tensors, values and casts of f16 into f32. Returns true if there were any.
bool widen_halves(onnx::ModelProto& model);

// A single step, public for tests.
void fold_batch_norms(onnx::GraphProto& graph);

}  // namespace tw::onnx_quantize
