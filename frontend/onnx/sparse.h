// Conversion of a model's sparse tensors to dense ones.
#pragma once
#include <onnx/onnx_pb.h>

#include "frontend/onnx/external_data.h"
#include "support/diag.h"

namespace tw::onnx_import {

// Turns sparse initializers into initializers, and the sparse_value of a Constant into its value.
// Errors: invalid_model (indices beyond the shape), unsupported (strings, types below a byte),
// limit.
Error make_dense(onnx::ModelProto& model, ExternalData& external);

}  // namespace tw::onnx_import
