// The two ways to round sums and products of quantized values: the zero point of the result is
// added after the rounding, or before it.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "ir/graph/graph.h"
#include "support/diag.h"

namespace tw {

enum class QuantizedRounding : uint8_t {
  standard,    // the zero point is added after rounding, with halves to even
  onnxruntime  // before, as its optimized kernels do: an odd zero point turns ties round
};
const char* quantized_rounding_name(QuantizedRounding rounding);
std::optional<QuantizedRounding> quantized_rounding_from_name(std::string_view name);
std::string quantized_rounding_names();  // all names, for help texts and errors

// Makes the graph of an imported model, which rounds by the standard, round in this way. The
// compiler and the evaluators need not know.
Error round_by(QuantizedRounding rounding, Graph& graph);

}  // namespace tw
