// How far a model's outputs may be off on the data, and how far they are.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/tensor.h"
#include "support/diag.h"

namespace tw {

enum class ErrorMeasure : uint8_t {
  largest,  // difference of an element, relative to the output's range: what `verify` compares
  rms,      // root of the mean square of the difference, by that of the output
  top1      // share of rows whose largest element is another one; of integers: that differ
};

struct ErrorLimit {
  ErrorMeasure measure = ErrorMeasure::largest;
  double most = 0;
};
// "1e-3" in the measure that `plain` says, "max:1e-3", "rms:0.02", "top1:99%" (agreement).
Expected<ErrorLimit> error_limit_from_text(std::string_view text, ErrorMeasure plain);

// "0.0012", or of top1 "98.5% agree".
std::string measure_text(double error, ErrorMeasure measure);
// "at most 0.001 of an output's range", to follow an error.
std::string to_string(const ErrorLimit& limit);

// Of the outputs of several runs; the worst output's.
class OutputErrors {
 public:
  explicit OutputErrors(ErrorMeasure measure) : measure_(measure) {}
  // want: of the same types, or f64 for floats.
  void add(const std::vector<Tensor>& got, const std::vector<Tensor>& want);
  double value() const;

 private:
  void add_squares(size_t output, const Tensor& got, const Tensor& want);
  void add_rows(const Tensor& got, const Tensor& want);

  struct Sums {
    double difference = 0, wanted = 0;
  };
  ErrorMeasure measure_;
  double largest_ = 0;
  std::vector<Sums> squares_;  // by output
  int64_t rows_ = 0, other_ = 0;
};

}  // namespace tw
