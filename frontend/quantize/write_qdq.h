// Writes QuantizeLinear and DequantizeLinear into a graph as a plan says.
#pragma once
#include "frontend/quantize/plan.h"

namespace tw::onnx_quantize {

void write_qdq(onnx::GraphProto& graph, const QuantPlan& plan, const ValueRanges& ranges,
               const QdqForm& form);

struct ScaleAndZero {
  float scale = 1;
  int zero = 0;
};
ScaleAndZero scale_of(ValueRange range, bool signed_values);

}  // namespace tw::onnx_quantize
