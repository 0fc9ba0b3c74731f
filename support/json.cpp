#include "support/json.h"

#include <nlohmann/json.hpp>

namespace tw {
namespace {

using Other = nlohmann::ordered_json;
constexpr int kMaxDepth = 64;

Other convert(const Json& v) {
  if (v.boolean()) return *v.boolean();
  if (v.integer()) return *v.integer();
  if (v.real()) return *v.real();
  if (v.text()) return *v.text();
  if (v.array()) {
    Other out = Other::array();
    for (const Json& item : *v.array()) out.push_back(convert(item));
    return out;
  }
  if (v.object()) {
    Other out = Other::object();
    for (const Json::Member& m : *v.object()) out[m.key] = convert(m.value);
    return out;
  }
  return nullptr;
}

Expected<Json> convert(const Other& v, int depth, const std::string& file) {
  if (depth > kMaxDepth)
    return make_error(DiagCode::limit, "'{0}': JSON nested deeper than {1}", file, kMaxDepth);
  if (v.is_boolean()) return Json(v.get<bool>());
  if (v.is_number_integer()) return Json(v.get<int64_t>());
  if (v.is_number()) return Json(v.get<double>());
  if (v.is_string()) return Json(v.get<std::string>());
  if (v.is_array()) {
    Json::Array out;
    for (const Other& item : v) {
      TW_ASSIGN(Json value, convert(item, depth + 1, file));
      out.push_back(std::move(value));
    }
    return Json(std::move(out));
  }
  if (v.is_object()) {
    Json::Object out;
    for (const auto& [key, item] : v.items()) {
      TW_ASSIGN(Json value, convert(item, depth + 1, file));
      out.push_back({key, std::move(value)});
    }
    return Json(std::move(out));
  }
  return Json();
}

}  // namespace

const Json& Json::operator[](std::string_view key) const {
  static const Json null;
  if (const Object* members = object())
    for (const Member& m : *members)
      if (m.key == key) return m.value;
  return null;
}

const Json::Array& Json::items() const {
  static const Array none;
  return array() ? *array() : none;
}

std::string dump(const Json& value, int indent) {
  return convert(value).dump(indent, ' ', false, Other::error_handler_t::replace);
}

Expected<Json> parse_json(std::string_view text, const std::string& file) {
  const Other parsed = Other::parse(text, nullptr, false);
  if (parsed.is_discarded()) return make_error(DiagCode::parse, "'{0}' is not valid JSON", file);
  return convert(parsed, 0, file);
}

}  // namespace tw
