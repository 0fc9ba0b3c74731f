// What a caller has for an input of a model, and how it becomes what the model takes.
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

// An element is (given * scale - mean) / std.
struct InputForm {
  // As the caller has it; what is not said is as the model takes it
  std::optional<DType> dtype;
  std::optional<PictureLayout> layout;
  std::optional<std::array<int64_t, 2>> size;  // height and width
  // How a picture of another size comes to the model's
  PictureFit fit = PictureFit::stretch;
  double fill = 0;                                  // pixels round a letterboxed picture
  bool centered = false;                            // it, else it stands at the top left
  PictureChannels channels = PictureChannels::rgb;  // that the model takes; callers have RGB
  std::vector<double> mean{0}, scale{1}, std{1};    // one, or one a channel of the model

  int64_t model_channels() const { return channels == PictureChannels::gray ? 1 : 3; }
  double factor(size_t channel) const { return at(scale, channel) / at(std, channel); }
  double offset(size_t channel) const { return at(mean, channel) / at(std, channel); }

 private:
  static double at(const std::vector<double>& list, size_t channel) {
    return list[list.size() == 1 ? 0 : channel];
  }
};

// Forms by the inputs' names.
struct InputForms {
  std::string yaml;  // that they were read from
  std::map<std::string, InputForm> of;
};

// "{image: {layout: nhwc, dtype: u8}}", or the file with it, which ends with .yaml or .yml.
// Errors name the input, the key and what it takes, all of them at once.
Expected<InputForms> parse_input_forms(const std::string& text);
bool is_input_forms_file(const std::string& text);

// Of pictures of four dimensions, negative ones unknown: the axis that has 1, 3 or 4 elements holds
// the channels; the second one where both or neither do.
PictureLayout layout_of(std::span<const int64_t> dims);

// Where a resized picture stands in a frame.
struct PicturePlace {
  int64_t top = 0, left = 0, height = 0, width = 0;
};
PicturePlace place_of(const InputForm& form, int64_t height, int64_t width, int64_t frame_height,
                      int64_t frame_width);

}  // namespace tw
