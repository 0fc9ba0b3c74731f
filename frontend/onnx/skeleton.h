// An ONNX file without its large payloads. The wire format is walked as a tree and copied. Tensor
// bytes (raw_data) above a threshold become external_data {location "#model", offset, length} that
// points into the same file. So the ONNX library, which copies all that it parses, never sees them.
#pragma once
#include <string>
#include <string_view>

#include "support/diag.h"

namespace tw::onnx_import {

inline constexpr const char* kModelLocation = "#model";
inline constexpr size_t kInlineBytes = 1024;  // payloads up to this size stay in the message

// `file` is a serialized ModelProto. Errors (code invalid_model) name the byte where it stops
// making sense. Messages may nest 64 deep, and the skeleton may have 2 GiB.
Expected<std::string> copy_skeleton(std::string_view file);

}  // namespace tw::onnx_import
