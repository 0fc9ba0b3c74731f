// Bilinear sampling with pixel centres at half integers, clamped at the edges, without smoothing.
// OpenCV's INTER_LINEAR samples so, and both detectors were trained on its pictures. Values are not
// rounded to integers in between.
#include "picture.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

#include <jpeglib.h>  // needs stdio.h before it

#include "fail.h"

namespace detect {
namespace {

constexpr int kFaceWidth = 320, kFaceHeight = 240;
constexpr int kYoloxSide = 416;
constexpr float kYoloxPad = 114.0F;

// Output i of a row lies between source pixels low and high, at `weight` of the way.
struct Sample {
  int low, high;
  float weight;
};

std::vector<Sample> samples(int from, int to) {
  std::vector<Sample> result;
  double step = static_cast<double>(from) / to;
  for (int i = 0; i < to; ++i) {
    double at = std::clamp((i + 0.5) * step - 0.5, 0.0, from - 1.0);
    int low = static_cast<int>(at);
    result.push_back({low, std::min(low + 1, from - 1), static_cast<float>(at - low)});
  }
  return result;
}

// Writes the picture, resized to width x height, into `plane` (rows `pitch` apart) as (pixel -
// mean) * scale.
void resize_channel(const Picture& picture, int channel, int width, int height, float mean,
                    float scale, float* plane, int pitch) {
  std::vector<Sample> columns = samples(picture.width, width),
                      rows = samples(picture.height, height);
  for (int y = 0; y < height; ++y) {
    const uint8_t* top = &picture.rgb[size_t{3} * picture.width * rows[y].low + channel];
    const uint8_t* bottom = &picture.rgb[size_t{3} * picture.width * rows[y].high + channel];
    for (int x = 0; x < width; ++x) {
      auto [low, high, weight] = columns[x];
      float above = top[3 * low] + weight * static_cast<float>(top[3 * high] - top[3 * low]);
      float below = bottom[3 * low] +
                    weight * static_cast<float>(bottom[3 * high] - bottom[3 * low]);
      plane[y * pitch + x] = (above + rows[y].weight * (below - above) - mean) * scale;
    }
  }
}

}  // namespace

Picture read_jpeg(const std::string& path) {
  FILE* file = std::fopen(path.c_str(), "rb");
  if (!file) fail("cannot open %s: %s", path.c_str(), std::strerror(errno));
  jpeg_decompress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);  // prints and exits
  jpeg_create_decompress(&jpeg);
  jpeg_stdio_src(&jpeg, file);
  jpeg_read_header(&jpeg, TRUE);
  jpeg.out_color_space = JCS_RGB;
  jpeg_start_decompress(&jpeg);
  Picture picture;
  picture.width = static_cast<int>(jpeg.output_width);
  picture.height = static_cast<int>(jpeg.output_height);
  picture.rgb.resize(size_t{3} * jpeg.output_width * jpeg.output_height);
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row = &picture.rgb[size_t{3} * jpeg.output_width * jpeg.output_scanline];
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
  std::fclose(file);
  return picture;
}

Tensor face_input(const Picture& picture) {
  constexpr int kPlane = kFaceWidth * kFaceHeight;
  Tensor tensor{{1, 3, kFaceHeight, kFaceWidth}, std::vector<float>(3 * kPlane)};
  for (int channel = 0; channel < 3; ++channel)
    resize_channel(picture, channel, kFaceWidth, kFaceHeight, 127.0F, 1.0F / 128.0F,
                   &tensor.values[channel * kPlane], kFaceWidth);
  return tensor;
}

double letterbox_scale(int width, int height) {
  return std::min(static_cast<double>(kYoloxSide) / width,
                  static_cast<double>(kYoloxSide) / height);
}

Tensor yolox_input(const Picture& picture) {
  constexpr int kPlane = kYoloxSide * kYoloxSide;
  Tensor tensor{{1, 3, kYoloxSide, kYoloxSide}, std::vector<float>(3 * kPlane, kYoloxPad)};
  double scale = letterbox_scale(picture.width, picture.height);
  // The small term guards against 415.9999...; a very long picture keeps at least one row.
  int width = std::clamp(static_cast<int>(std::floor(picture.width * scale + 1e-6)), 1, kYoloxSide);
  int height = std::clamp(static_cast<int>(std::floor(picture.height * scale + 1e-6)), 1,
                          kYoloxSide);
  for (int channel = 0; channel < 3; ++channel)
    resize_channel(picture, channel, width, height, 0.0F, 1.0F,
                   &tensor.values[(2 - channel) * kPlane], kYoloxSide);
  return tensor;
}

}  // namespace detect
