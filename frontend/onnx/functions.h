// The model's own functions (FunctionProto) in place of the nodes that call them.
#pragma once
#include <onnx/onnx_pb.h>

#include "support/diag.h"

namespace tw::onnx_import {

// The full size is known before anything is expanded, so that a small file cannot grow without
// bounds. Errors: invalid_model (functions that call themselves), limit.
Error inline_functions(onnx::ModelProto& model, int64_t max_nodes);

}  // namespace tw::onnx_import
