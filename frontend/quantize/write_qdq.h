// Writing of QuantizeLinear and DequantizeLinear into a graph, by a plan.
#pragma once
#include "frontend/quantize/plan.h"

namespace tw::onnx_quantize {

void write_qdq(onnx::GraphProto& graph, const QuantPlan& plan, const ValueRanges& ranges,
               const QdqForm& form);

// The range of each group of values that share a scale.
ValueRanges group_ranges(const QuantPlan& plan, const ValueRanges& ranges);

}  // namespace tw::onnx_quantize
