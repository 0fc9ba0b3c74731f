#include "driver/compare/compare.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "driver/run/tensors.h"

namespace tw {
namespace {

// Maps a float to a whole number: neighbours differ by one, and both zeros are 0.
double ordered(const Tensor& t, int64_t i = 0) {
  uint64_t bits = 0;
  const size_t bytes = static_cast<size_t>(dtype_bytes(t.dtype));
  std::memcpy(&bits, t.bytes.data() + static_cast<size_t>(i) * bytes, bytes);  // little endian
  const uint64_t sign = uint64_t{1} << (8 * bytes - 1);
  const double magnitude = static_cast<double>(bits & (sign - 1));
  return bits & sign ? -magnitude : magnitude;
}

double distance(double got, double want) {
  if (got == want || (std::isnan(got) && std::isnan(want))) return 0;
  const double d = std::abs(got - want);
  return std::isnan(d) ? std::numeric_limits<double>::infinity() : d;
}

// The distance in units in the last place of got's type; a wider want is rounded to it first.
double ulps(const Tensor& got, const Tensor& want, int64_t i) {
  if (got.dtype == want.dtype) return std::abs(ordered(got, i) - ordered(want, i));
  Tensor rounded = Tensor::zeros(got.dtype, {1});
  rounded.set(0, want.at(i));
  return std::abs(ordered(got, i) - ordered(rounded));
}

}  // namespace

Difference compare(const Tensor& got, const Tensor& want, double tolerance) {
  static_assert(std::endian::native == std::endian::little);
  Difference d;
  const bool floats = is_float(got.dtype) && is_float(want.dtype);
  if (got.dtype != want.dtype && !(floats && want.dtype == DType::f64)) {
    d.problem = std::string("is ") + dtype_name(got.dtype) + ", expected " + dtype_name(want.dtype);
    return d;
  }
  if (got.shape != want.shape) {
    d.problem = "has shape " + shape_text(got.shape) + ", expected " + shape_text(want.shape);
    return d;
  }
  double low = 0, high = 0, squares = 0;
  for (int64_t i = 0; i < want.size(); ++i) {
    const double a = got.at(i), b = want.at(i);
    if (std::isfinite(b)) {
      low = std::min(low, b);
      high = std::max(high, b);
    }
    if (std::isnan(a) && std::isnan(b)) ++d.nan;
    double off = distance(a, b);
    if (got.dtype == DType::string) off = got.int_at(i) == want.int_at(i) ? 0 : 1;
    // Integers can differ beyond a double's precision.
    if (!floats && off == 0 && got.int_at(i) != want.int_at(i)) off = 1;
    squares += off * off;
    if (off > d.max_abs || i == 0) {
      d.max_abs = off;
      d.worst = i;
      d.got = a;
      d.want = b;
    }
    if (floats && off > 0)
      d.max_ulp = std::max(d.max_ulp, std::isinf(off) ? off : ulps(got, want, i));
  }
  d.elements = want.size();
  const auto of_range = [range = high - low](double off) {
    return off == 0 ? 0 : range > 0 ? off / range : std::numeric_limits<double>::infinity();
  };
  d.max_rel = of_range(d.max_abs);
  d.rms_rel = of_range(std::sqrt(squares / static_cast<double>(std::max<int64_t>(d.elements, 1))));
  const bool last_place = floats && dtype_bytes(got.dtype) < 4 && tolerance > 0 && d.max_ulp <= 1;
  d.same = (floats ? d.max_rel <= tolerance || last_place : d.max_abs == 0) &&
           (d.elements == 0 || d.nan < d.elements);
  return d;
}

std::string number_text(double value) {
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.6g", value);
  return buffer.data();
}

std::string to_string(const Difference& d) {
  if (!d.problem.empty()) return d.problem;
  if (d.elements > 0 && d.nan == d.elements)
    return "all " + std::to_string(d.elements) + " elements are NaN in both: nothing was compared";
  std::string text = "max abs " + number_text(d.max_abs) + ", max rel " + number_text(d.max_rel) +
                     ", max ulp " + number_text(d.max_ulp);
  if (d.nan > 0)
    text += ", " + std::to_string(d.nan) + " of " + std::to_string(d.elements) +
            " elements are NaN in both";
  if (!d.same)
    text += ", worst at " + std::to_string(d.worst) + ": " + number_text(d.got) + ", expected " +
            number_text(d.want);
  return text;
}

Json to_json(const Difference& d) {
  if (!d.problem.empty()) return Json::Object{{"ok", false}, {"problem", d.problem}};
  return Json::Object{{"ok", d.same},         {"max_abs", d.max_abs}, {"max_rel", d.max_rel},
                      {"rms_rel", d.rms_rel}, {"max_ulp", d.max_ulp}, {"worst", d.worst},
                      {"got", d.got},         {"want", d.want},       {"elements", d.elements},
                      {"nan", d.nan}};
}

Summary summarize(const Tensor& tensor) {
  Summary s;
  double sum = 0;
  int64_t count = 0;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const double v = tensor.at(i);
    if (std::isnan(v)) {
      ++s.nan;
      continue;
    }
    s.infinite += std::isinf(v) ? 1 : 0;
    if (count == 0 || v > s.max) {
      s.max = v;
      s.argmax = i;
    }
    s.min = count == 0 ? v : std::min(s.min, v);
    sum += v;
    ++count;
  }
  s.mean = count ? sum / static_cast<double>(count) : 0;
  if (s.nan > 0 && count == 0) s.min = s.max = s.mean = std::numeric_limits<double>::quiet_NaN();
  return s;
}

std::string to_string(const Summary& s) {
  std::string text = "min " + number_text(s.min) + "  max " + number_text(s.max) + "  mean " +
                     number_text(s.mean) + "  argmax " + std::to_string(s.argmax);
  if (s.nan > 0) text += "  NaN " + std::to_string(s.nan);
  if (s.infinite > 0) text += "  infinite " + std::to_string(s.infinite);
  return text;
}

}  // namespace tw
