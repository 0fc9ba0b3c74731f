// Helpers of the importers of quantized operators: conversion of tensors to floats and back.
#pragma once
#include "frontend/onnx/node_import.h"

namespace tw::onnx_import {

// The places of scales and zero points: one for each index of the axis or, with a block size, one
// for each `block` elements of the axis.
struct Along {
  int64_t axis = 1, block = 0;
};

// (x - zero) * scale in type `to`; zero may be absent.
Val dequantize(NodeImport& n, Val x, Val scale, Val zero, Along along, DType to);
Val dequantize(NodeImport& n, Val x, Val scale, Val zero, int64_t axis = 1);  // in f32

struct QuantizeOptions {
  bool saturate = true;          // for 8-bit floats
  DType precision = DType::f32;  // type of x / scale
};
// saturate(round_half_even(x / scale) + zero) as `to`. If `to` is a float of a byte or less, the
// cast rounds.
Val quantize(NodeImport& n, Val x, Val scale, Val zero, DType to, Along along,
             QuantizeOptions options = {});
// For f32; scale is cast to it
Val quantize(NodeImport& n, Val x, Val scale, Val zero, DType to, int64_t axis = 1);

// Quantizes to u8 over the data's own range.
void import_dynamic_quantize(NodeImport& n);
// The product of a, quantized to u8 over its own range (which includes 0), and integers b. b_zero
// and bias may be absent.
Val dynamic_product(NodeImport& n, Val a, Val b, Val b_scale, Val b_zero, Val bias = {});

}  // namespace tw::onnx_import
