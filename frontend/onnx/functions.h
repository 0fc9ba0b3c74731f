// Expansion of the model's own functions (FunctionProto): their nodes replace the calls.
#pragma once
#include <onnx/onnx_pb.h>

#include "support/diag.h"

namespace tw::onnx_import {

// Computes the full size before it expands anything, so that a small file cannot grow without
// bounds. Errors: invalid_model (functions that call themselves), limit.
Error inline_functions(onnx::ModelProto& model, int64_t max_nodes);

}  // namespace tw::onnx_import
