// A small JSON value with ordered keys. Reading and writing go through the nlohmann library, which
// only json.cpp sees.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "support/diag.h"

namespace tw {

template <class Value>
struct JsonMember {  // a template, so that Json need be complete only where members are used
  std::string key;
  Value value;
};

class Json {
 public:
  using Member = JsonMember<Json>;
  using Array = std::vector<Json>;
  using Object = std::vector<Member>;  // keys as written, in their order

  Json() = default;
  Json(bool v) : value_(v) {}
  Json(int v) : value_(int64_t{v}) {}
  Json(int64_t v) : value_(v) {}
  Json(uint64_t v) : value_(static_cast<int64_t>(v)) {}  // sizes: below 2^63
  Json(double v) : value_(v) {}                          // NaN and infinities are written as null
  Json(const char* v) : value_(std::string(v)) {}
  Json(std::string v) : value_(std::move(v)) {}
  Json(Array v) : value_(std::move(v)) {}
  Json(Object v) : value_(std::move(v)) {}

  // The value when it has that type, else null.
  const bool* boolean() const { return std::get_if<bool>(&value_); }
  const int64_t* integer() const { return std::get_if<int64_t>(&value_); }
  const double* real() const { return std::get_if<double>(&value_); }
  const std::string* text() const { return std::get_if<std::string>(&value_); }
  const Array* array() const { return std::get_if<Array>(&value_); }
  const Object* object() const { return std::get_if<Object>(&value_); }

  // The member of an object with this key; a null value if there is none, or this is no object.
  const Json& operator[](std::string_view key) const;
  // Lenient reads, for files that other versions wrote.
  std::string text_or_empty() const { return text() ? *text() : std::string(); }
  int64_t integer_or(int64_t otherwise) const { return integer() ? *integer() : otherwise; }
  double number_or(double otherwise) const {
    return real() ? *real() : integer() ? static_cast<double>(*integer()) : otherwise;
  }
  const Array& items() const;  // empty when this is no array

 private:
  std::variant<std::nullptr_t, bool, int64_t, double, std::string, Array, Object> value_ = nullptr;
};

// Replaces bytes that are not UTF-8. indent < 0: one line.
std::string dump(const Json& value, int indent = 2);
Expected<Json> parse_json(std::string_view text, const std::string& file);

template <class Range>
Json json_array(const Range& range) {
  Json::Array items;
  for (const auto& item : range) items.push_back(Json(item));
  return items;
}

}  // namespace tw
