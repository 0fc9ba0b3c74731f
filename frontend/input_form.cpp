#include "frontend/input_form.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "frontend/mapped_file.h"

namespace tw {
namespace {

constexpr size_t kMostChannels = 4096;
constexpr int64_t kMostPixels = int64_t{1} << 16;  // limit of a side
constexpr const char* kKeys = "dtype, layout, size, fit, fill, place, channels, mean, scale, std";

class FormReader {
 public:
  explicit FormReader(std::string input) : input_(std::move(input)) {}

  Expected<InputForm> read(const YAML::Node& root) {
    if (!root.IsMap())
      return make_error(DiagCode::invalid_argument,
                        "--inputs: '{0}' is no map such as {{layout: nhwc, dtype: u8}", input_);
    for (const auto& entry : root) {
      const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
      if (!keys_.insert({key, true}).second) refuse(key, "given once, not twice");
      else read_key(key, entry.second);
    }
    TW_TRY(make_error(std::move(problems_)));
    return form_;
  }

 private:
  void refuse(const std::string& key, const std::string& accepted) {
    problems_.push_back({DiagCode::invalid_argument,
                         "--inputs: '" + key + "' of '" + input_ + "' is " + accepted,
                         {},
                         {}});
  }

  template <class Value>
  void read_word(const std::string& key, const YAML::Node& node, Value& value,
                 const std::vector<std::pair<std::string, Value>>& words) {
    std::string all;
    for (const auto& [word, meaning] : words) {
      if (node.IsScalar() && node.Scalar() == word) {
        value = meaning;
        return;
      }
      all += (all.empty() ? "one of " : ", ") + word;
    }
    refuse(key, all);
  }

  static std::optional<std::vector<double>> numbers(const YAML::Node& node) {
    std::vector<double> values;
    try {
      if (node.IsScalar()) return std::vector<double>{node.as<double>()};
      if (!node.IsSequence() || node.size() == 0 || node.size() > kMostChannels)
        return std::nullopt;
      for (const YAML::Node& item : node) values.push_back(item.as<double>());
    } catch (const YAML::Exception&) { return std::nullopt; }
    return values;
  }

  void read_numbers(const std::string& key, const YAML::Node& node, std::vector<double>& values) {
    const auto given = numbers(node);
    const bool divides = key == "std";
    if (!given || std::ranges::any_of(
                      *given, [&](double v) { return !std::isfinite(v) || (divides && v == 0); }))
      return refuse(key, std::string("a number or a list of one a channel") +
                             (divides ? ", none of them 0" : ""));
    values = *given;
  }

  void read_size(const YAML::Node& node) {
    const auto given = node.IsSequence() ? numbers(node) : std::nullopt;
    const auto is_side = [](double v) { return v >= 1 && v <= kMostPixels && v == std::floor(v); };
    if (!given || given->size() != 2 || !std::ranges::all_of(*given, is_side))
      return refuse("size", "a list of height and width, as in [480, 640]");
    form_.size = {static_cast<int64_t>((*given)[0]), static_cast<int64_t>((*given)[1])};
  }

  void read_key(const std::string& key, const YAML::Node& node) {
    using Fit = PictureFit;
    using Order = PictureChannels;
    using Layout = std::optional<PictureLayout>;
    if (key == "dtype") {
      form_.dtype = node.IsScalar() ? dtype_from_name(node.Scalar()) : std::nullopt;
      if (!form_.dtype || static_cast<int>(*form_.dtype) >= kArithmeticDTypeCount)
        refuse(key, "a type such as u8 or f32");
    } else if (key == "layout") {
      read_word<Layout>(key, node, form_.layout,
                        {{"nchw", PictureLayout::nchw}, {"nhwc", PictureLayout::nhwc}});
    } else if (key == "size") {
      read_size(node);
    } else if (key == "fit") {
      read_word<Fit>(
          key, node, form_.fit,
          {{"stretch", Fit::stretch}, {"letterbox", Fit::letterbox}, {"crop", Fit::crop}});
    } else if (key == "channels") {
      read_word<Order>(key, node, form_.channels,
                       {{"rgb", Order::rgb}, {"bgr", Order::bgr}, {"gray", Order::gray}});
    } else if (key == "place") {
      read_word<bool>(key, node, form_.centered, {{"corner", false}, {"center", true}});
    } else if (key == "mean") {
      read_numbers(key, node, form_.mean);
    } else if (key == "scale") {
      read_numbers(key, node, form_.scale);
    } else if (key == "std") {
      read_numbers(key, node, form_.std);
    } else if (key == "fill") {
      const auto given = node.IsScalar() ? numbers(node) : std::nullopt;
      if (!given || !(std::abs((*given)[0]) <= 1e6)) refuse(key, "a number");
      else form_.fill = (*given)[0];
    } else {
      refuse(key, std::string("none of ") + kKeys);
    }
  }

  std::string input_;
  InputForm form_;
  std::map<std::string, bool> keys_;
  std::vector<Diag> problems_;
};

Expected<std::string> yaml_of(const std::string& text) {
  if (!is_input_forms_file(text)) return text;
  TW_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(text));
  return std::string(file->text());
}

}  // namespace

bool is_input_forms_file(const std::string& text) {
  return text.ends_with(".yaml") || text.ends_with(".yml");
}

Expected<InputForms> parse_input_forms(const std::string& text) {
  InputForms forms;
  if (text.empty()) return forms;
  TW_ASSIGN(forms.yaml, yaml_of(text));
  YAML::Node root;
  try {
    root = YAML::Load(forms.yaml);
  } catch (const YAML::Exception& e) {
    return make_error(DiagCode::invalid_argument, "--inputs: {0}", e.what());
  }
  if (!root.IsMap())
    return make_error(DiagCode::invalid_argument,
                      "--inputs: '{0}' is no map of inputs such as {{image: {{layout: nhwc, dtype: "
                      "u8}}, and no .yaml file",
                      text);
  std::vector<Diag> problems;
  for (const auto& entry : root) {
    const std::string input = entry.first.IsScalar() ? entry.first.Scalar() : "";
    Expected<InputForm> form = FormReader(input).read(entry.second);
    if (forms.of.contains(input))
      problems.push_back({DiagCode::invalid_argument,
                          "--inputs: '" + input + "' is given twice, expected once",
                          {},
                          {}});
    else if (form) forms.of[input] = std::move(*form);
    else
      for (Diag& diag : take_diags(form.takeError())) problems.push_back(std::move(diag));
  }
  TW_TRY(make_error(std::move(problems)));
  return forms;
}

PictureLayout layout_of(std::span<const int64_t> dims) {
  const auto holds_channels = [&](size_t axis) {
    return dims.size() == 4 && (dims[axis] == 1 || dims[axis] == 3 || dims[axis] == 4);
  };
  return holds_channels(3) && !holds_channels(1) ? PictureLayout::nhwc : PictureLayout::nchw;
}

PicturePlace place_of(const InputForm& form, int64_t height, int64_t width, int64_t frame_height,
                      int64_t frame_width) {
  PicturePlace place{0, 0, frame_height, frame_width};
  if (form.fit == PictureFit::stretch) return place;
  const double by_height = static_cast<double>(frame_height) / static_cast<double>(height),
               by_width = static_cast<double>(frame_width) / static_cast<double>(width);
  const bool crop = form.fit == PictureFit::crop;
  const double ratio = crop ? std::max(by_height, by_width) : std::min(by_height, by_width);
  const auto side = [&](int64_t given, int64_t frame) {
    constexpr double kMostPixels = 0x1p31;  // a side of more is refused for its memory
    const auto scaled = static_cast<int64_t>(
        std::min(static_cast<double>(given) * ratio, kMostPixels));
    return crop ? std::max(scaled, frame) : std::max<int64_t>(1, scaled);
  };
  place.height = side(height, frame_height);
  place.width = side(width, frame_width);
  if (crop || form.centered) {
    place.top = (frame_height - place.height) / 2;
    place.left = (frame_width - place.width) / 2;
  }
  return place;
}

}  // namespace tw
