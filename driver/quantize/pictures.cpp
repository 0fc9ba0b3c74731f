#include "driver/quantize/pictures.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "frontend/mapped_file.h"

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STBI_NO_STDIO
#define STBI_MAX_DIMENSIONS 16384
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb/stb_image.h>
#pragma GCC diagnostic pop

namespace tw {
namespace {

struct Picture {
  int width = 0, height = 0;
  std::unique_ptr<stbi_uc, void (*)(void*)> pixels{nullptr, stbi_image_free};  // RGB
  double at(int y, int x, int c) const {
    y = std::clamp(y, 0, height - 1);
    x = std::clamp(x, 0, width - 1);
    return pixels
        .get()[(static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x)) * 3 +
               static_cast<size_t>(c)];
  }
  // Between four pixels; positions of their centres
  double between(double y, double x, int c) const {
    const double top = std::floor(y), left = std::floor(x);
    const int y0 = static_cast<int>(top), x0 = static_cast<int>(left);
    const double fy = y - top, fx = x - left;
    return (at(y0, x0, c) * (1 - fx) + at(y0, x0 + 1, c) * fx) * (1 - fy) +
           (at(y0 + 1, x0, c) * (1 - fx) + at(y0 + 1, x0 + 1, c) * fx) * fy;
  }
};

Expected<Picture> decode(const std::string& path) {
  TW_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  Picture picture;
  int channels = 0;
  const auto bytes = file->bytes();
  if (bytes.size() < (size_t{1} << 30))
    picture.pixels.reset(stbi_load_from_memory(reinterpret_cast<const stbi_uc*>(bytes.data()),
                                               static_cast<int>(bytes.size()), &picture.width,
                                               &picture.height, &channels, 3));
  if (!picture.pixels)
    return make_error(DiagCode::io, "'{0}' is no PNG or JPEG picture that can be read", path);
  return picture;
}

struct Frame {
  int64_t height = 0, width = 0, channels = 0;
};

Expected<Frame> frame_of(const TensorSpec& spec, const PictureForm& form) {
  const bool last = form.layout == PictureLayout::nhwc;
  std::optional<int64_t> sizes[3];
  if (spec.dims.size() == 4)
    for (size_t i = 0; i < 3; ++i) {
      const Expr& dim = spec.dims[last ? 1 + i : (i == 2 ? 1 : 2 + i)];
      if (dim.defined()) sizes[i] = as_const(dim);
    }
  const int64_t wanted = form.channels == PictureChannels::gray ? 1 : 3;
  if (!sizes[0] || !sizes[1] || sizes[2] != wanted ||
      (spec.dtype != DType::f32 && spec.dtype != DType::u8))
    return make_error(DiagCode::invalid_argument,
                      "input '{0}' is {1}: pictures need f32 or u8 of 4 dimensions with {2} "
                      "channels ({3}) and a height and width that are known (--dim); or give .npy",
                      spec.name, type_text(spec), wanted, last ? "nhwc" : "nchw");
  return Frame{*sizes[0], *sizes[1], wanted};
}

// Where the resized picture stands in the frame.
struct Fit {
  double y_step = 1, x_step = 1;  // source pixels a pixel of the frame
  int64_t top = 0, left = 0, height = 0, width = 0;
};

Fit fit(const Picture& picture, const Frame& frame, const PictureForm& form) {
  const double by_height = static_cast<double>(frame.height) / picture.height;
  const double by_width = static_cast<double>(frame.width) / picture.width;
  Fit f{1 / by_height, 1 / by_width, 0, 0, frame.height, frame.width};
  if (form.fit == PictureFit::stretch) return f;
  const bool crop = form.fit == PictureFit::crop;
  const double ratio = crop ? std::max(by_height, by_width) : std::min(by_height, by_width);
  f.height = std::max<int64_t>(1, static_cast<int64_t>(picture.height * ratio));
  f.width = std::max<int64_t>(1, static_cast<int64_t>(picture.width * ratio));
  f.y_step = static_cast<double>(picture.height) / static_cast<double>(f.height);
  f.x_step = static_cast<double>(picture.width) / static_cast<double>(f.width);
  if (crop || form.centered) {
    f.top = (frame.height - f.height) / 2;
    f.left = (frame.width - f.width) / 2;
  }
  return f;
}

double pixel(const Picture& picture, const Fit& f, const PictureForm& form, int64_t y, int64_t x,
             int channel) {
  if (y < f.top || y >= f.top + f.height || x < f.left || x >= f.left + f.width) return form.fill;
  const double from_y = (static_cast<double>(y - f.top) + 0.5) * f.y_step - 0.5;
  const double from_x = (static_cast<double>(x - f.left) + 0.5) * f.x_step - 0.5;
  const auto of = [&](int c) { return picture.between(from_y, from_x, c); };
  switch (form.channels) {
    case PictureChannels::rgb: return std::nearbyint(of(channel));
    case PictureChannels::bgr: return std::nearbyint(of(2 - channel));
    case PictureChannels::gray:
      return std::nearbyint(0.299 * of(0) + 0.587 * of(1) + 0.114 * of(2));
  }
  TW_UNREACHABLE("bad channels");
}

}  // namespace

bool is_picture(const std::string& path) {
  std::string ending = std::filesystem::path(path).extension();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return ending == ".png" || ending == ".jpg" || ending == ".jpeg";
}

Expected<Tensor> load_picture(const std::string& path, const TensorSpec& spec,
                              const PictureForm& form) {
  TW_ASSIGN(const Frame frame, frame_of(spec, form));
  TW_ASSIGN(const Picture picture, decode(path));
  const Fit place = fit(picture, frame, form);
  const bool last = form.layout == PictureLayout::nhwc;
  Tensor tensor = Tensor::zeros(
      spec.dtype, last ? std::vector<int64_t>{1, frame.height, frame.width, frame.channels}
                       : std::vector<int64_t>{1, frame.channels, frame.height, frame.width});
  for (int64_t c = 0; c < frame.channels; ++c)
    for (int64_t y = 0; y < frame.height; ++y)
      for (int64_t x = 0; x < frame.width; ++x) {
        const auto channel = static_cast<size_t>(c);
        const double value = (pixel(picture, place, form, y, x, static_cast<int>(c)) -
                              form.mean[channel]) *
                             form.scale[channel];
        tensor.set(last ? (y * frame.width + x) * frame.channels + c
                        : (c * frame.height + y) * frame.width + x,
                   value);
      }
  return tensor;
}

}  // namespace tw
