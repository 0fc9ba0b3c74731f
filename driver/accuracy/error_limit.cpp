#include "driver/accuracy/error_limit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "driver/compare/compare.h"
#include "support/number.h"

namespace tw {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

std::optional<ErrorLimit> limit_from(std::string_view text, ErrorMeasure plain) {
  const size_t colon = text.find(':');
  const std::string_view word = colon == std::string_view::npos ? "" : text.substr(0, colon);
  std::string_view number = colon == std::string_view::npos ? text : text.substr(colon + 1);
  if (word == "top1") {
    if (!number.ends_with('%')) return std::nullopt;
    number.remove_suffix(1);
    const std::optional<double> agreement = number_from_text(number);
    if (!agreement || *agreement < 0 || *agreement > 100) return std::nullopt;
    return ErrorLimit{ErrorMeasure::top1, 1 - *agreement / 100};
  }
  if (!word.empty() && word != "max" && word != "rms") return std::nullopt;
  const std::optional<double> most = number_from_text(number);
  if (!most || *most < 0 || (!word.empty() && number.empty())) return std::nullopt;
  return ErrorLimit{word == "max"   ? ErrorMeasure::largest
                    : word == "rms" ? ErrorMeasure::rms
                                    : plain,
                    *most};
}

// The index of the largest element in each row of the last axis; integers are classes themselves
std::vector<int64_t> classes_of(const Tensor& tensor) {
  std::vector<int64_t> classes;
  if (!is_float(tensor.dtype)) {
    for (int64_t i = 0; i < tensor.size(); ++i) classes.push_back(tensor.int_at(i));
    return classes;
  }
  const int64_t width = tensor.shape.empty() ? 1 : tensor.shape.back();
  for (int64_t row = 0; width > 0 && row < tensor.size() / width; ++row) {
    int64_t best = 0;
    for (int64_t i = 1; i < width; ++i)
      if (tensor.at(row * width + i) > tensor.at(row * width + best)) best = i;
    classes.push_back(best);
  }
  return classes;
}

// The error that `verify` compares. It is infinite for tensors that cannot be compared.
double largest_error(const Tensor& got, const Tensor& want) {
  const Difference d = compare(got, want, 0);
  if (!d.problem.empty() || (d.elements > 0 && d.nan == d.elements)) return kInfinite;
  if (!is_float(got.dtype)) return d.max_abs == 0 ? 0 : kInfinite;
  return d.max_rel;
}

}  // namespace

Expected<ErrorLimit> error_limit_from_text(std::string_view text, ErrorMeasure plain) {
  if (const std::optional<ErrorLimit> limit = limit_from(text, plain)) return *limit;
  return make_error(DiagCode::invalid_argument,
                    "--max-error '{0}': a number such as 1e-3, max:1e-3 of an output's range, "
                    "rms:0.02 of its root mean square, or top1:99% of rows with the same class",
                    text);
}

std::string measure_text(double error, ErrorMeasure measure) {
  if (measure == ErrorMeasure::top1) return number_text(100 * (1 - error)) + "% agree";
  return number_text(error);
}

std::string to_string(const ErrorLimit& limit) {
  switch (limit.measure) {
    case ErrorMeasure::largest:
      return "at most " + number_text(limit.most) + " of an output's range";
    case ErrorMeasure::rms:
      return "at most " + number_text(limit.most) + " of an output's root mean square";
    case ErrorMeasure::top1:
      return "at least " + number_text(100 * (1 - limit.most)) + "% of rows with the same class";
  }
  TW_UNREACHABLE("bad measure");
}

void OutputErrors::add(const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
  switch (measure_) {
    case ErrorMeasure::largest:
      for (size_t i = 0; i < want.size(); ++i)
        largest_ = std::max(largest_, largest_error(got[i], want[i]));
      break;
    case ErrorMeasure::rms:
      squares_.resize(want.size());
      for (size_t i = 0; i < want.size(); ++i) add_squares(i, got[i], want[i]);
      break;
    case ErrorMeasure::top1: add_rows(got.front(), want.front()); break;
  }
}

void OutputErrors::add_squares(size_t output, const Tensor& got, const Tensor& want) {
  for (int64_t k = 0; k < want.size(); ++k) {
    const double w = want.at(k), d = got.at(k) - w;
    squares_[output].difference += d * d;
    squares_[output].wanted += w * w;
  }
}

void OutputErrors::add_rows(const Tensor& got, const Tensor& want) {
  const std::vector<int64_t> a = classes_of(got), b = classes_of(want);
  for (size_t row = 0; row < b.size(); ++row) {
    ++rows_;
    other_ += row >= a.size() || a[row] != b[row];
  }
}

double OutputErrors::value() const {
  if (measure_ == ErrorMeasure::largest) return largest_;
  if (measure_ == ErrorMeasure::top1)
    return rows_ == 0 ? 0 : static_cast<double>(other_) / static_cast<double>(rows_);
  double worst = 0;
  for (const Sums& s : squares_) {
    if (s.difference == 0) continue;
    const double error = std::sqrt(s.difference / s.wanted);
    worst = std::max(worst, std::isfinite(error) ? error : kInfinite);
  }
  return worst;
}

}  // namespace tw
