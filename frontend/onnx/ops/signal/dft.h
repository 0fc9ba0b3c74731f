// The discrete Fourier transform as matrix products: one product for a short length, one for each
// factor of a long one.
#pragma once
#include "frontend/onnx/node_import.h"

namespace tw::onnx_import {

struct DftPlan {
  int64_t axis = 0;
  Expr length;  // the signal is cut or filled up with zeros
  bool inverse = false, onesided = false;
};

// x: [..., 1 or 2], with real and imaginary parts on the last axis. A onesided forward transform
// gives length / 2 + 1 points; a onesided inverse one takes these and gives [..., 1].
Val dft(NodeImport& n, Val x, const DftPlan& plan);
// 0.0, 1.0, ... in f64; a constant if it is short.
Val steps(NodeImport& n, const Expr& count);

}  // namespace tw::onnx_import
