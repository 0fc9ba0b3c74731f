// Turns the detectors' raw outputs into boxes in pixels of the picture.
#pragma once
#include <vector>

#include "tensor.h"

namespace detect {

struct Detection {
  const char* label;
  double score;
  double left, top, right, bottom;  // pixels of the original picture
};

// Both return the detections above the score limit after greedy non-maximum suppression within each
// label, best first, clamped to the picture, and fail when a tensor's shape is not the model's.

// Takes scores [1, 4420, 2] (background, face) and boxes [1, 4420, 4] (corners as fractions of the
// picture).
std::vector<Detection> decode_face(const Tensor& scores, const Tensor& boxes, int width,
                                   int height);

// Takes one output [1, 3549, 85]: centre and size relative to a cell of the grids of stride 8, 16,
// 32 (size as a logarithm), objectness, 80 class scores. Formulas: YOLOX, arXiv 2107.08430.
std::vector<Detection> decode_yolox(const Tensor& output, int width, int height);

}  // namespace detect
