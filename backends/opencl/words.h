// Words of OpenCL C: types, literals, free names, support functions
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "ir/expr.h"

namespace tw::opencl {

// The type of expressions: f16 and bf16 are computed as float, bool as int
std::string value_type(DType t);
// The type of elements in memory: f16 and bf16 are ushort, bool is uchar
std::string storage_type(DType t);
// The integers in which the type is added and multiplied, so that results wrap
std::string unsigned_type(DType t);
std::string literal(double value, DType t);
std::string literal(int64_t value, DType t);

std::string bare(const std::string& text);  // removes brackets around the whole text

// Makes C names from the kernel's names: unique, no keyword, no function that the text calls.
class Names {
 public:
  std::string fresh(std::string_view wanted);

 private:
  std::set<std::string> taken_;
};

// The support functions (tw_...) that the text calls, directly or indirectly
std::string support_functions(const std::string& text);

}  // namespace tw::opencl
