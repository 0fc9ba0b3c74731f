// How people name the free dimensions of a model: as the model does, or by input and axis.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program.h"
#include "support/diag.h"

namespace tw {

// What the model calls its symbols: those of a graph are identifiers.
using SymbolNames = std::map<std::string, std::string, std::less<>>;
// As people see a symbol: by its name in the model; without one, as interface_name.
std::string symbol_name(const SymbolNames& names, std::string_view symbol);
// An expression with the names of its symbols, in quotes where one would read as several words.
std::string to_string(const Expr& e, const SymbolNames& names);
// What is said of a graph's types, "f32[n.1, 4]", with the names of its symbols: "f32[n, 4]".
std::string with_names(std::string_view text, const SymbolNames& names);
Error with_names(Error error, const SymbolNames& names);  // its messages and notes

// "a.b.0" -> "a_b_0", "2x" -> "_2x": letters, digits and '_', no digit first. "x[3]" -> "x_3".
std::string identifier(std::string_view text);

// "--dim batch=N", as a shell takes it: "--dim 'x[3]=N'".
std::string dim_flag(const std::string& name);

// "x[3]": what a dimension is called that the model gives no name.
std::string dim_at(std::string_view input, size_t axis);

// The name of the dimension that `text` means: that name itself, its identifier, or INPUT[AXIS].
// Dims of `inputs` are numbers, variables with the model's names, or undefined (computed). Errors:
// there is no such dimension (a note lists those there are), or it is not free.
Expected<std::string> find_dim(std::string_view text, const std::vector<TensorSpec>& inputs);

// A note for errors: "free dimensions: batch (x[0]), W (x[3], y[2])"; "no dimension of the inputs
// is free".
std::string free_dims_text(const std::vector<TensorSpec>& inputs);

}  // namespace tw
