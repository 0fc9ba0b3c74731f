// Pictures: JPEG to RGB, and RGB to the input tensor that each detector was trained on.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tensor.h"

namespace detect {

struct Picture {
  int width = 0, height = 0;
  std::vector<uint8_t> rgb;  // height x width x 3
};

// Fails with libjpeg's message on a file that is no JPEG; gray and colour are both taken.
Picture read_jpeg(const std::string& path);

// Returns a 1x3x240x320 tensor: RGB, (pixel - 127) / 128, stretched to fit.
Tensor face_input(const Picture& picture);

// Returns a 1x3x416x416 tensor: BGR, pixel values 0..255, scaled by letterbox_scale into the upper
// left corner, 114 elsewhere.
Tensor yolox_input(const Picture& picture);

// The factor by which a picture is scaled so that its longer side fills 416.
double letterbox_scale(int width, int height);

}  // namespace detect
