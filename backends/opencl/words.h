// Words of OpenCL C: types, literals, names that are free, support functions.
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "ir/expr.h"

namespace tw::opencl {

// Of expressions: f16 and bf16 are computed as float, bool as int
std::string value_type(DType t);
std::string storage_type(DType t);  // of elements in memory: f16 and bf16 as ushort, bool as uchar
// In which integers of the type are added and multiplied, so that they wrap
std::string unsigned_type(DType t);
std::string literal(double value, DType t);
std::string literal(int64_t value, DType t);

std::string bare(const std::string& text);  // without brackets around all of it

// C names for those of the kernel: unique, no keyword, no function that the text calls.
class Names {
 public:
  std::string fresh(std::string_view wanted);

 private:
  std::set<std::string> taken_;
};

// The support functions (tw_...) that the text calls, and those that they call.
std::string support_functions(const std::string& text);

}  // namespace tw::opencl
