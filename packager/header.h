// Writes NAME.h of a model: typed C for its inputs, outputs and sizes, with tilewright.h inside. So
// a program needs this one file and the library, and nothing else. Headers of several models can be
// included in one program.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/dtype.h"
#include "ir/expr.h"
#include "support/diag.h"

namespace tw {

inline constexpr size_t kReadableColumns = 200;  // longest expression that a person is shown

struct InterfaceDim {
  enum class Kind : uint8_t { fixed, symbol, computed };
  Kind kind = Kind::fixed;
  int64_t extent = 0;  // fixed: the extent; symbol: index into ModelInterface::symbols
  std::string text;    // computed: the expression, for a comment
  Expr value{};        // computed: in terms of ModelInterface::variables
};

struct InterfaceTensor {
  std::string name;  // the model's own name, any characters
  DType dtype = DType::f32;
  std::vector<InterfaceDim> dims;
};

struct ModelInterface {
  std::string name;    // a C identifier: the library exports tw_<name>_query
  std::string prefix;  // a C identifier that begins the header's names; "": tw_<name>
  std::vector<InterfaceTensor> inputs, outputs;
  std::vector<std::string> symbols;    // the model's names of its sizes
  std::vector<std::string> variables;  // the symbols' names in expressions, in the same order
  Expr arena{};            // an expression of `variables`; undefined where there is no single one
  std::string arena_text;  // the expression with the model's names
  std::optional<uint64_t> arena_bytes;      // bytes of the arena, where no symbol decides them
  std::optional<uint64_t> max_arena_bytes;  // bytes of the arena at the symbols' limits, if any
  bool grows = false;                       // data decide about sizes: runs may allocate
  std::vector<std::string> needs;           // conditions on sizes that a run checks, as sentences
  bool freestanding = false;                // one function, on the caller's memory
};

// The header's text: C99 and C++11, clean under -Wall -Wextra -pedantic. It has names, extents,
// sizes, a type for the elements of each input and output, and typed helpers to create a context
// and to run over a struct of pointers. With symbols, that struct holds their values and the sizes
// of outputs that depend on them, and functions give the extents and the arena for these values.
// The header of a freestanding object has tw_status, all of these, and one typed run instead of the
// helpers.
std::string write_header(const ModelInterface& model);

// Makes a C identifier: "input.1:0" -> "input_1_0", "2x" -> "_2x". A reserved name gets a '_'
// behind it, or an 'x' before it where it begins with '_'. The identifier and its macros' names
// (_RANK, _ELEMENTS, _BYTES, and a _DIM_ for each of the `rank` axes) are unique against `taken`,
// which grows.
std::string c_identifier(const std::string& name, std::vector<std::string>& taken, size_t rank = 0);

}  // namespace tw
