// The plan of a Resize, axis by axis. The importer makes the core operator of it, or computes taps
// as values.
#pragma once
#include "frontend/onnx/node_import.h"

namespace tw::onnx_import {

struct ResizeAxis {
  int64_t axis = 0;
  Expr out;                      // extent of the result
  Val scale;                     // rank 0, f64
  std::optional<double> factor;  // the scale, if it is known
  // The scale as a quotient of i64s if sizes give it: coordinates are then exact. Absent otherwise
  Val above, below;
  Val begin, end;  // region of interest (tf_crop_and_resize), rank 0, f64
};

struct ResizePlan {
  ResizeMode mode{};
  CoordinateMode coordinates{};
  NearestMode nearest{};
  double cubic_a = -0.75, extrapolation = 0;
  // crop: coordinates are those of the region of interest
  bool antialias = false, exclude_outside = false, crop = false;
  // Nearest, whatever `nearest` says: an axis with a scale below 1 takes the element above, another
  // axis the one below
  bool ceil_below_one = false;
  std::vector<ResizeAxis> axes;
};

// Resizes one axis after the other. Positions and weights are tensors [taps, out]; y is the sum
// over taps of weight * x[position]. Scales, extents and regions may be known only to the run.
Val resize_by_taps(NodeImport& n, Val x, const ResizePlan& plan);

}  // namespace tw::onnx_import
