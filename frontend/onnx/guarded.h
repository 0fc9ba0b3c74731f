// Guarded calls of the ONNX library, which reports problems by exceptions.
#pragma once
#include <exception>
#include <functional>
#include <string_view>

#include "support/diag.h"

namespace tw::onnx_import {

// Runs a step; the first line of an exception becomes its error.
inline Error guarded(const char* step, const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& e) {
    const std::string_view text(e.what());
    return make_error(DiagCode::invalid_model, "{0}: {1}", step, text.substr(0, text.find('\n')));
  }
  return Error::success();
}

}  // namespace tw::onnx_import
