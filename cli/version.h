// The version of this program, and of its parts.
#pragma once
#include <string>

#include "support/json.h"

namespace tw {

std::string version_text();  // "tilewright 1.2.3 (ABI 1)", then LLVM, ONNX and targets, a line each
Json version_json();

}  // namespace tw
