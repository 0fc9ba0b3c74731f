// How one axis of a Resize is sampled; shared by the core operator's importer and the one that
// computes its taps as values.
#pragma once
#include "frontend/onnx/node_import.h"

namespace tw::onnx_import {

struct ResizeAxis {
  int64_t axis = 0;
  Expr out;                      // extent
  Val scale;                     // rank 0, f64
  std::optional<double> factor;  // the same, where known
  // The scale as a quotient of i64 where sizes say it, of which coordinates are exact; else absent
  Val above, below;
  Val begin, end;  // of the region of interest (tf_crop_and_resize), rank 0, f64
};

struct ResizePlan {
  ResizeMode mode{};
  CoordinateMode coordinates{};
  NearestMode nearest{};
  double cubic_a = -0.75, extrapolation = 0;
  // crop: coordinates of the region of interest
  bool antialias = false, exclude_outside = false, crop = false;
  // Nearest, whatever `nearest` says: an axis whose scale is below 1 takes the element above,
  // others the one below
  bool ceil_below_one = false;
  std::vector<ResizeAxis> axes;
};

// One axis after the other: positions and weights are tensors [taps, out], y = sum over taps of
// weight * x[position]. Takes whatever is known while running only: scales, extents, regions.
Val resize_by_taps(NodeImport& n, Val x, const ResizePlan& plan);

}  // namespace tw::onnx_import
