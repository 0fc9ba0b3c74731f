#include "frontend/picture_form.h"

#include <yaml-cpp/yaml.h>

#include <utility>
#include <vector>

namespace tw {
namespace {

// One of some words, or the error that lists them.
template <class Value>
Error read_word(const std::string& key, const YAML::Node& node, Value& value,
                const std::vector<std::pair<std::string, Value>>& words) {
  std::string all;
  for (const auto& [word, meaning] : words) {
    if (node.IsScalar() && node.Scalar() == word) {
      value = meaning;
      return Error::success();
    }
    all += (all.empty() ? "" : ", ") + word;
  }
  return make_error(DiagCode::invalid_argument, "--picture: '{0}' is one of {1}", key, all);
}

// A number for all channels, or a list of one a channel.
Error read_numbers(const std::string& key, const YAML::Node& node, std::array<double, 3>& values) {
  try {
    if (node.IsScalar()) {
      values.fill(node.as<double>());
      return Error::success();
    }
    if (node.IsSequence() && node.size() == values.size()) {
      for (size_t i = 0; i < values.size(); ++i) values[i] = node[i].as<double>();
      return Error::success();
    }
  } catch (const YAML::Exception&) {}  // as below
  return make_error(DiagCode::invalid_argument, "--picture: '{0}' is a number or a list of three",
                    key);
}

Error read_key(const std::string& key, const YAML::Node& node, PictureForm& form) {
  using Fit = PictureFit;
  using Order = PictureChannels;
  using Layout = PictureLayout;
  if (key == "fit")
    return read_word<Fit>(
        key, node, form.fit,
        {{"stretch", Fit::stretch}, {"letterbox", Fit::letterbox}, {"crop", Fit::crop}});
  if (key == "channels")
    return read_word<Order>(key, node, form.channels,
                            {{"rgb", Order::rgb}, {"bgr", Order::bgr}, {"gray", Order::gray}});
  if (key == "layout")
    return read_word<Layout>(key, node, form.layout,
                             {{"nchw", Layout::nchw}, {"nhwc", Layout::nhwc}});
  if (key == "place")
    return read_word<bool>(key, node, form.centered, {{"corner", false}, {"center", true}});
  if (key == "mean") return read_numbers(key, node, form.mean);
  if (key == "scale") return read_numbers(key, node, form.scale);
  if (key == "fill") {
    std::array<double, 3> value{};
    TW_TRY(read_numbers(key, node, value));
    form.fill = value[0];
    return Error::success();
  }
  return make_error(DiagCode::invalid_argument,
                    "--picture: '{0}' is none of fit, fill, place, channels, layout, mean, scale",
                    key);
}

}  // namespace

Expected<PictureForm> parse_picture_form(const std::string& yaml) {
  PictureForm form;
  if (yaml.empty()) return form;
  YAML::Node root;
  try {
    root = YAML::Load(yaml);
  } catch (const YAML::Exception& e) {
    return make_error(DiagCode::invalid_argument, "--picture: {0}", e.what());
  }
  if (!root.IsMap())
    return make_error(DiagCode::invalid_argument,
                      "--picture: '{0}' is no map such as {{fit: letterbox, channels: bgr}", yaml);
  std::vector<Diag> problems;
  for (const auto& entry : root)
    if (Error error = read_key(entry.first.Scalar(), entry.second, form))
      for (Diag& diag : take_diags(std::move(error))) problems.push_back(std::move(diag));
  TW_TRY(make_error(std::move(problems)));
  return form;
}

}  // namespace tw
