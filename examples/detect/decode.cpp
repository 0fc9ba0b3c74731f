// Everything is computed in double from the f32 outputs, in the order reference.py computes it.
#include "decode.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fail.h"
#include "picture.h"

namespace detect {
namespace {

constexpr double kFaceScore = 0.7, kFaceOverlap = 0.3;
constexpr double kYoloxScore = 0.3, kYoloxOverlap = 0.45;
constexpr int kFaceAnchors = 4420;
constexpr int kYoloxSide = 416, kYoloxCells = 3549;
constexpr int kYoloxStrides[] = {8, 16, 32};
constexpr int kClassCount = 80;

// The classes of the COCO detection challenge in the order of the model's outputs.
constexpr const char* kCocoClasses[] = {"person",        "bicycle",      "car",
                                        "motorcycle",    "airplane",     "bus",
                                        "train",         "truck",        "boat",
                                        "traffic light", "fire hydrant", "stop sign",
                                        "parking meter", "bench",        "bird",
                                        "cat",           "dog",          "horse",
                                        "sheep",         "cow",          "elephant",
                                        "bear",          "zebra",        "giraffe",
                                        "backpack",      "umbrella",     "handbag",
                                        "tie",           "suitcase",     "frisbee",
                                        "skis",          "snowboard",    "sports ball",
                                        "kite",          "baseball bat", "baseball glove",
                                        "skateboard",    "surfboard",    "tennis racket",
                                        "bottle",        "wine glass",   "cup",
                                        "fork",          "knife",        "spoon",
                                        "bowl",          "banana",       "apple",
                                        "sandwich",      "orange",       "broccoli",
                                        "carrot",        "hot dog",      "pizza",
                                        "donut",         "cake",         "chair",
                                        "couch",         "potted plant", "bed",
                                        "dining table",  "toilet",       "tv",
                                        "laptop",        "mouse",        "remote",
                                        "keyboard",      "cell phone",   "microwave",
                                        "oven",          "toaster",      "sink",
                                        "refrigerator",  "book",         "clock",
                                        "vase",          "scissors",     "teddy bear",
                                        "hair drier",    "toothbrush"};
static_assert(sizeof kCocoClasses / sizeof kCocoClasses[0] == kClassCount);

void expect_dims(const char* name, const Tensor& tensor, const std::vector<int64_t>& dims) {
  if (tensor.dims != dims) fail("%s has not the shape of this detector's output", name);
}

double overlap(const Detection& a, const Detection& b) {
  double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  if (width <= 0 || height <= 0) return 0;
  double both = width * height;
  return both /
         ((a.right - a.left) * (a.bottom - a.top) + (b.right - b.left) * (b.bottom - b.top) - both);
}

std::vector<Detection> suppress(const std::vector<Detection>& found, double limit, int width,
                                int height) {
  std::vector<size_t> order(found.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return found[a].score != found[b].score ? found[a].score > found[b].score : a < b;
  });
  std::vector<Detection> kept;
  for (size_t index : order) {
    const Detection& candidate = found[index];
    bool covered = std::any_of(kept.begin(), kept.end(), [&](const Detection& better) {
      return better.label == candidate.label && overlap(better, candidate) > limit;
    });
    if (!covered) kept.push_back(candidate);
  }
  for (Detection& d : kept) {
    d.left = std::clamp<double>(d.left, 0, width);
    d.right = std::clamp<double>(d.right, 0, width);
    d.top = std::clamp<double>(d.top, 0, height);
    d.bottom = std::clamp<double>(d.bottom, 0, height);
  }
  return kept;
}

}  // namespace

std::vector<Detection> decode_face(const Tensor& scores, const Tensor& boxes, int width,
                                   int height) {
  expect_dims("scores", scores, {1, kFaceAnchors, 2});
  expect_dims("boxes", boxes, {1, kFaceAnchors, 4});
  std::vector<Detection> found;
  for (int i = 0; i < kFaceAnchors; ++i) {
    double score = scores.values[2 * i + 1];
    const float* box = &boxes.values[4 * i];
    if (score > kFaceScore)
      found.push_back({"face", score, static_cast<double>(box[0]) * width,
                       static_cast<double>(box[1]) * height, static_cast<double>(box[2]) * width,
                       static_cast<double>(box[3]) * height});
  }
  return suppress(found, kFaceOverlap, width, height);
}

std::vector<Detection> decode_yolox(const Tensor& output, int width, int height) {
  expect_dims("output", output, {1, kYoloxCells, 5 + kClassCount});
  double scale = letterbox_scale(width, height);
  std::vector<Detection> found;
  const float* cell = output.values.data();
  for (int stride : kYoloxStrides) {
    int side = kYoloxSide / stride;
    for (int i = 0; i < side * side; ++i, cell += 5 + kClassCount) {
      const float* best = std::max_element(cell + 5, cell + 5 + kClassCount);
      double score = static_cast<double>(cell[4]) * *best;
      if (!(score > kYoloxScore)) continue;
      double x = (cell[0] + static_cast<double>(i % side)) * stride,
             y = (cell[1] + static_cast<double>(i / side)) * stride;
      double half_width = std::exp(static_cast<double>(cell[2])) * stride / 2;
      double half_height = std::exp(static_cast<double>(cell[3])) * stride / 2;
      found.push_back({kCocoClasses[best - cell - 5], score, (x - half_width) / scale,
                       (y - half_height) / scale, (x + half_width) / scale,
                       (y + half_height) / scale});
    }
  }
  return suppress(found, kYoloxOverlap, width, height);
}

}  // namespace detect
