// The form in which a caller has an input of a model, for example a picture of another size, and
// its conversion to the form that the model takes.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/dtype.h"
#include "support/diag.h"

namespace tw {

enum class PictureFit : uint8_t { stretch, letterbox, crop };
enum class PictureChannels : uint8_t { rgb, bgr, gray };
enum class PictureLayout : uint8_t { nchw, nhwc };

// An element of the model's input is (given * scale - mean) / std.
struct InputForm {
  // The form that the caller has; what is not set is as the model takes it
  std::optional<DType> dtype;
  std::optional<PictureLayout> layout;
  std::optional<std::array<int64_t, 2>> size;  // height and width
  // Fit of a picture with another size into the model's size
  PictureFit fit = PictureFit::stretch;
  double fill = 0;                                  // value of pixels round a letterboxed picture
  bool centered = false;                            // the picture; else it is at the top left
  PictureChannels channels = PictureChannels::rgb;  // channels of the model; callers have RGB
  std::vector<double> mean{0}, scale{1}, std{1};    // one number, or one for each channel

  int64_t model_channels() const { return channels == PictureChannels::gray ? 1 : 3; }
  double factor(size_t channel) const { return at(scale, channel) / at(std, channel); }
  double offset(size_t channel) const { return at(mean, channel) / at(std, channel); }

 private:
  static double at(const std::vector<double>& list, size_t channel) {
    return list[list.size() == 1 ? 0 : channel];
  }
};

struct InputForms {
  std::string yaml;  // the text that they were read from
  std::map<std::string, InputForm> of;
};

// Parses "{image: {layout: nhwc, dtype: u8}}", or the file with such text, whose name ends with
// .yaml or .yml. Errors name the input, the key and the accepted values; all errors come at once.
Expected<InputForms> parse_input_forms(const std::string& text);
bool is_input_forms_file(const std::string& text);

// The layout of pictures with four dimensions; negative ones are unknown. The axis with 1, 3 or 4
// elements holds the channels. It is the second axis if both or neither have as many.
PictureLayout layout_of(std::span<const int64_t> dims);

// The place of a resized picture in a frame.
struct PicturePlace {
  int64_t top = 0, left = 0, height = 0, width = 0;
};
PicturePlace place_of(const InputForm& form, int64_t height, int64_t width, int64_t frame_height,
                      int64_t frame_width);

}  // namespace tw
