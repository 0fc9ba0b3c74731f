// When sums and products between quantized values get the zero point of their result.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "ir/graph/graph.h"
#include "support/diag.h"

namespace tw {

enum class QuantizedRounding : uint8_t {
  standard,    // after they are rounded, halves to even
  onnxruntime  // before, as that one's optimized kernels do: with an odd one, ties go the other way
};
const char* quantized_rounding_name(QuantizedRounding rounding);
std::optional<QuantizedRounding> quantized_rounding_from_name(std::string_view name);
std::string quantized_rounding_names();  // of all, for help texts and errors

// The graph of an imported model, which rounds by the standard, rounds like this from now on: what
// compiles and what evaluates it need not know.
Error round_by(QuantizedRounding rounding, Graph& graph);

}  // namespace tw
