// What the importers of quantized operators share: tensors to floats and back.
#pragma once
#include "frontend/onnx/node_import.h"

namespace tw::onnx_import {

// Of scales and zero points: along one axis, or, with a block, of that many elements of the axis
// each.
struct Along {
  int64_t axis = 1, block = 0;
};

// (x - zero) * scale, in `to`. zero may be absent.
Val dequantize(NodeImport& n, Val x, Val scale, Val zero, Along along, DType to);
Val dequantize(NodeImport& n, Val x, Val scale, Val zero, int64_t axis = 1);  // in f32

struct QuantizeOptions {
  bool saturate = true;          // of 8-bit floats
  DType precision = DType::f32;  // of x / scale
};
// saturate(round_half_even(x / scale) + zero) as `to`; to floats of a byte and less the cast
// rounds.
Val quantize(NodeImport& n, Val x, Val scale, Val zero, DType to, Along along,
             QuantizeOptions options = {});
// Of f32; scale is cast to it
Val quantize(NodeImport& n, Val x, Val scale, Val zero, DType to, int64_t axis = 1);

// To u8 over the data's own range.
void import_dynamic_quantize(NodeImport& n);
// a in floats, quantized to u8 over its own range, with 0 in it, by integers b. b_zero and bias may
// be absent.
Val dynamic_product(NodeImport& n, Val a, Val b, Val b_scale, Val b_zero, Val bias = {});

}  // namespace tw::onnx_import
