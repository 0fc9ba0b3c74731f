// Names that people use for the free dimensions of a model: the model's own, or input and axis.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program.h"
#include "support/diag.h"

namespace tw {

// The model's name of each symbol. The symbols themselves are identifiers.
using SymbolNames = std::map<std::string, std::string, std::less<>>;
// The name that people see for a symbol: the model's name, or interface_name where it has none.
std::string symbol_name(const SymbolNames& names, std::string_view symbol);
// Prints an expression with the names of its symbols. A name that would read as several words is
// quoted.
std::string to_string(const Expr& e, const SymbolNames& names);
// Replaces the symbols in a text about types: "f32[n.1, 4]" becomes "f32[n, 4]".
std::string with_names(std::string_view text, const SymbolNames& names);
Error with_names(Error error, const SymbolNames& names);  // in messages and notes

// Letters, digits and '_', no digit first: "a.b.0" -> "a_b_0", "2x" -> "_2x", "x[3]" -> "x_3"
std::string identifier(std::string_view text);

// The flag "--dim batch=N", quoted for a shell where needed: "--dim 'x[3]=N'"
std::string dim_flag(const std::string& name);

// "x[3]": the name of a dimension that the model leaves unnamed
std::string dim_at(std::string_view input, size_t axis);

// The name of the dimension that `text` means. `text` is that name, its identifier, or INPUT[AXIS].
// Dims of `inputs` are numbers, variables with the model's names, or undefined (computed). Errors:
// no such dimension (a note lists the existing ones), or it is not free.
Expected<std::string> find_dim(std::string_view text, const std::vector<TensorSpec>& inputs);

// A note for errors: "free dimensions: batch (x[0]), W (x[3], y[2])", or "no dimension of the
// inputs is free"
std::string free_dims_text(const std::vector<TensorSpec>& inputs);

}  // namespace tw
