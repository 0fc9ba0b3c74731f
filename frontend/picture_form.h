// How a picture becomes a model's input.
#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "support/diag.h"

namespace tw {

enum class PictureFit : uint8_t { stretch, letterbox, crop };
enum class PictureChannels : uint8_t { rgb, bgr, gray };
enum class PictureLayout : uint8_t { nchw, nhwc };

// An element is (pixel - mean) * scale, pixels from 0 to 255.
struct PictureForm {
  PictureFit fit = PictureFit::stretch;
  PictureChannels channels = PictureChannels::rgb;
  PictureLayout layout = PictureLayout::nchw;
  std::array<double, 3> mean = {0, 0, 0}, scale = {1, 1, 1};  // in the order of the channels
  double fill = 0;                                            // pixels round a letterboxed picture
  bool centered = false;  // a letterboxed picture, else it stands at the top left
};

// "{fit: letterbox, fill: 114, channels: bgr}"; "" is all defaults. Errors name the key and what
// it takes.
Expected<PictureForm> parse_picture_form(const std::string& yaml);

}  // namespace tw
