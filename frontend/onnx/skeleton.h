// An ONNX file without its large payloads. The wire format is walked as a tree and copied, but
// tensor bytes (raw_data) over a threshold become external_data {location "#model", offset, length}
// that points into the same file, so that the ONNX library, which copies whatever it parses, never
// sees them.
#pragma once
#include <string>
#include <string_view>

#include "support/diag.h"

namespace tw::onnx_import {

inline constexpr const char* kModelLocation = "#model";
inline constexpr size_t kInlineBytes = 1024;  // payloads up to this size stay in the message

// `file` is a serialized ModelProto. Errors (code invalid_model) name the byte where it stops
// making sense; nesting is limited to 64 messages and the skeleton to 2 GiB.
Expected<std::string> copy_skeleton(std::string_view file);

}  // namespace tw::onnx_import
