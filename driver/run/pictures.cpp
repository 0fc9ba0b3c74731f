#include "driver/run/pictures.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "frontend/mapped_file.h"
#include "packager/output_file.h"

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STBI_NO_STDIO
#define STBI_MAX_DIMENSIONS 16384
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb/stb_image.h>
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#define STBI_WRITE_NO_STDIO
#include <stb/stb_image_write.h>
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
  // Interpolates between four pixels. y and x count from the centre of the first pixel.
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
  bool last = false;  // channels are the last axis
};

Expected<Frame> frame_of(const TensorSpec& spec, const InputForm& form) {
  std::vector<int64_t> dims;
  for (const Expr& dim : spec.dims) dims.push_back(dim.defined() ? as_const(dim).value_or(-1) : -1);
  Frame frame;
  frame.last = layout_of(dims) == PictureLayout::nhwc;
  const int64_t wanted = form.model_channels();
  if (dims.size() == 4) {
    frame.channels = dims[frame.last ? 3 : 1];
    frame.height = dims[frame.last ? 1 : 2];
    frame.width = dims[frame.last ? 2 : 3];
  }
  if (frame.height < 1 || frame.width < 1 || frame.channels != wanted ||
      (spec.dtype != DType::f32 && spec.dtype != DType::u8))
    return make_error(DiagCode::invalid_argument,
                      "input '{0}' is {1}: pictures need f32 or u8 of 4 dimensions with {2} "
                      "channels and a height and width that are known (--dim); or give .npy",
                      spec.name, type_text(spec), wanted);
  return frame;
}

double pixel(const Picture& picture, const PicturePlace& place, const InputForm& form, int64_t y,
             int64_t x, int channel) {
  y -= place.top, x -= place.left;
  if (y < 0 || y >= place.height || x < 0 || x >= place.width) return form.fill;
  const auto from = [](int64_t at, int source, int64_t sides) {
    return (static_cast<double>(at) + 0.5) * source / static_cast<double>(sides) - 0.5;
  };
  const double from_y = from(y, picture.height, place.height),
               from_x = from(x, picture.width, place.width);
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
                              const InputForm& form) {
  TW_ASSIGN(const Frame frame, frame_of(spec, form));
  for (const auto* list : {&form.mean, &form.scale, &form.std})
    if (list->size() != 1 && list->size() != static_cast<size_t>(frame.channels))
      return make_error(DiagCode::invalid_argument,
                        "--inputs: '{0}' has {1} channels, and a mean, scale or std of {2} numbers",
                        spec.name, frame.channels, list->size());
  TW_ASSIGN(const Picture picture, decode(path));
  const PicturePlace place = place_of(form, picture.height, picture.width, frame.height,
                                      frame.width);
  Tensor tensor = Tensor::zeros(
      spec.dtype, frame.last ? std::vector<int64_t>{1, frame.height, frame.width, frame.channels}
                             : std::vector<int64_t>{1, frame.channels, frame.height, frame.width});
  for (int64_t c = 0; c < frame.channels; ++c)
    for (int64_t y = 0; y < frame.height; ++y)
      for (int64_t x = 0; x < frame.width; ++x) {
        const auto channel = static_cast<size_t>(c);
        const double value = pixel(picture, place, form, y, x, static_cast<int>(c)) *
                                 form.factor(channel) -
                             form.offset(channel);
        tensor.set(frame.last ? (y * frame.width + x) * frame.channels + c
                              : (c * frame.height + y) * frame.width + x,
                   value);
      }
  return tensor;
}

namespace {

// The frame of an output, without axes of extent 1 in front.
Expected<Frame> picture_in(const std::string& name, const Tensor& tensor) {
  std::vector<int64_t> dims = tensor.shape;
  while (dims.size() > 2 && dims.front() == 1 && (dims.size() > 3 || dims.back() > 3))
    dims.erase(dims.begin());
  const auto is_channels = [](int64_t extent) { return extent == 1 || extent == 3; };
  Frame frame;
  if (dims.size() == 2) frame = {dims[0], dims[1], 1, true};
  else if (dims.size() == 3 && is_channels(dims[0])) frame = {dims[1], dims[2], dims[0], false};
  else if (dims.size() == 3 && is_channels(dims[2])) frame = {dims[0], dims[1], dims[2], true};
  constexpr int64_t kMost = 16384;
  if (frame.height < 1 || frame.width < 1 || frame.height > kMost || frame.width > kMost ||
      (!is_float(tensor.dtype) && tensor.dtype != DType::u8))
    return make_error(
        DiagCode::invalid_argument,
        "output '{0}' is {1}{2}: a picture is of floats or u8, one of them, with 1 or "
        "3 channels and at most {3} pixels a side",
        name, dtype_name(tensor.dtype), shape_text(tensor.shape), kMost);
  return frame;
}

}  // namespace

Error save_picture(const std::string& path, const std::string& name, const Tensor& tensor,
                   const InputForm& form) {
  TW_ASSIGN(const Frame frame, picture_in(name, tensor));
  std::string pixels;
  const int64_t plane = frame.height * frame.width;
  for (int64_t at = 0; at < plane; ++at)
    for (int64_t c = 0; c < frame.channels; ++c) {
      const int64_t from = form.channels == PictureChannels::bgr ? frame.channels - 1 - c : c;
      const double value = tensor.at(frame.last ? at * frame.channels + from : from * plane + at),
                   pixel = value * form.factor(static_cast<size_t>(c)) -
                           form.offset(static_cast<size_t>(c));
      pixels += static_cast<char>(static_cast<unsigned char>(
          std::isnan(pixel) ? 0 : std::clamp(std::nearbyint(pixel), 0.0, 255.0)));
    }
  constexpr int kQuality = 95;
  std::string file;
  const auto add = [](void* to, void* bytes, int count) {
    static_cast<std::string*>(to)->append(static_cast<const char*>(bytes),
                                          static_cast<size_t>(count));
  };
  const int width = static_cast<int>(frame.width), height = static_cast<int>(frame.height),
            channels = static_cast<int>(frame.channels);
  const int done = path.ends_with(".png")
                       ? stbi_write_png_to_func(add, &file, width, height, channels, pixels.data(),
                                                width * channels)
                       : stbi_write_jpg_to_func(add, &file, width, height, channels, pixels.data(),
                                                kQuality);
  TW_CHECK(done != 0, "a picture in memory is written");
  return write_file(path, file);
}

}  // namespace tw
