// The generated NAME.h of a model: typed C for its inputs, outputs and sizes, with tilewright.h
// inside, so that one file and the library are all that a program needs. Headers of several models
// go into one program.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/dtype.h"
#include "ir/expr.h"
#include "support/diag.h"

namespace tw {

inline constexpr size_t kReadableColumns = 200;  // of an expression that a person reads

struct InterfaceDim {
  enum class Kind : uint8_t { fixed, symbol, computed };
  Kind kind = Kind::fixed;
  int64_t extent = 0;  // fixed: the extent; symbol: index into ModelInterface::symbols
  std::string text;    // computed: the expression, for a comment
  Expr value{};        // computed: in terms of ModelInterface::variables
};

struct InterfaceTensor {
  std::string name;  // the model's own, any characters
  DType dtype = DType::f32;
  std::vector<InterfaceDim> dims;
};

struct ModelInterface {
  std::string name;    // a C identifier: the library exports tw_<name>_query
  std::string prefix;  // a C identifier that begins the header's names; "": tw_<name>
  std::vector<InterfaceTensor> inputs, outputs;
  std::vector<std::string> symbols;     // by the model's names
  std::vector<std::string> variables;   // what expressions call them
  Expr arena{};                         // in these terms; undefined where it is not one expression
  std::string arena_text;               // the expression with the model's names
  std::optional<uint64_t> arena_bytes;  // of a model without symbols
  std::optional<uint64_t> max_arena_bytes;  // of one whose symbols have limits
  bool grows = false;                       // data decide about sizes: runs may allocate
  std::vector<std::string> needs;           // of sizes, which a run looks at: sentences
  bool freestanding = false;                // one function, on the caller's memory
};

// The header's text: C99 and C++11, clean under -Wall -Wextra -pedantic. It has names, extents,
// sizes, a type for the elements of each input and output, and typed create and run helpers over a
// struct of pointers; with symbols, that struct holds their values and the sizes of outputs that
// depend on them, and functions give the extents and the arena for these values. Of a freestanding
// object: tw_status, all of these, and one typed run.
std::string write_header(const ModelInterface& model);

// "input.1:0" -> "input_1_0", "2x" -> "_2x", a reserved name gets a '_' behind, or, where it
// begins with one, an 'x' before; it and its macros' names (_RANK, _ELEMENTS, _BYTES, and _DIM_0 to
// the rank's) are unique against `taken`, which grows.
std::string c_identifier(const std::string& name, std::vector<std::string>& taken, size_t rank = 0);

}  // namespace tw
