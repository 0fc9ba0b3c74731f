// Compares two tensors, and sums a tensor up in one line of numbers.
#pragma once
#include <string>

#include "ir/graph/tensor.h"
#include "support/json.h"

namespace tw {

struct Difference {
  bool same = false;    // within the tolerance
  std::string problem;  // dtypes or shapes differ: the numbers below mean nothing
  // NaN against NaN and equal infinities count as 0, NaN against a number as infinity.
  double max_abs = 0;
  // max_abs over the reference's range: the smallest interval that holds 0 and its finite values
  double max_rel = 0;
  double rms_rel = 0;  // root mean square of the differences, over the same range
  // Floats only: units in the last place of the first tensor's type between the two values
  double max_ulp = 0;
  int64_t worst = 0;              // flat index of max_abs
  double got = 0, want = 0;       // the two values at `worst`
  int64_t elements = 0, nan = 0;  // elements compared; elements that are NaN in both
};
// Tensors of nothing but NaN are not the same: nothing was compared. Otherwise floats are the same
// if max_rel <= tolerance, and integers and bools if they are equal. With a tolerance, short floats
// may also differ by one unit in the last place, which can be more. want may be f64 for any float
// type.
Difference compare(const Tensor& got, const Tensor& want, double tolerance);
std::string to_string(const Difference& d);
Json to_json(const Difference& d);

struct Summary {
  double min = 0, max = 0, mean = 0;
  int64_t argmax = -1;  // flat index of the first largest; -1: no elements
  int64_t nan = 0, infinite = 0;
};
// NaNs are counted and otherwise skipped. Without a number, min, max and mean are NaN.
Summary summarize(const Tensor& tensor);
// "min -1  max 2  mean 0.5  argmax 3", and how many are NaN or infinite
std::string to_string(const Summary& s);
std::string number_text(double value);  // "%.6g"

}  // namespace tw
