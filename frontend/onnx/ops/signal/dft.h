// The discrete Fourier transform as matrix products: one for short lengths, a product for each
// factor of long ones.
#pragma once
#include "frontend/onnx/node_import.h"

namespace tw::onnx_import {

struct DftPlan {
  int64_t axis = 0;
  Expr length;  // the signal is cut or filled up with zeros
  bool inverse = false, onesided = false;
};

// x: [..., 1 or 2], the last axis the real and the imaginary part. Forward onesided gives length /
// 2 + 1 points, inverse onesided takes them and gives [..., 1].
Val dft(NodeImport& n, Val x, const DftPlan& plan);
// 0.0, 1.0 ... in f64: a constant where short.
Val steps(NodeImport& n, const Expr& count);

}  // namespace tw::onnx_import
