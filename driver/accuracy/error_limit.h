// A limit on how far a model's outputs may be from reference outputs, and the sums that measure how
// far they are. `--max-error` gives the limit, and the accuracy gate holds a compile against it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/tensor.h"
#include "support/diag.h"

namespace tw {

enum class ErrorMeasure : uint8_t {
  largest,  // largest difference of an element, over the output's range: `verify` compares it
  rms,      // root mean square of the difference, over that of the output
  top1      // share of rows with another largest element; for integers, of elements that differ
};

struct ErrorLimit {
  ErrorMeasure measure = ErrorMeasure::largest;
  double most = 0;
};
// Parses "1e-3" (in the measure `plain`), "max:1e-3", "rms:0.02" or "top1:99%" (agreement).
Expected<ErrorLimit> error_limit_from_text(std::string_view text, ErrorMeasure plain);

// "0.0012", or "98.5% agree" for top1
std::string measure_text(double error, ErrorMeasure measure);
// "at most 0.001 of an output's range", the text that follows a measured error
std::string to_string(const ErrorLimit& limit);

// Accumulates the error over several runs. For top1 the first output counts, else the worst one.
class OutputErrors {
 public:
  explicit OutputErrors(ErrorMeasure measure) : measure_(measure) {}
  // want has the types of got, or f64 in place of another float type.
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
