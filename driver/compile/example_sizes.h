// Example sizes for the dimensions that a model leaves free: reports need numbers that a reader can
// picture.
#pragma once
#include <string>
#include <vector>

#include "ir/dim_names.h"
#include "ir/graph/graph.h"

namespace tw {

using Sizes = std::map<std::string, int64_t, std::less<>>;  // by symbol

// One batch, 224 pixels a side, 128 of anything else. The dimension's name decides, else its place
// in the shape. Sizes stay within the limits.
Sizes example_sizes(const std::vector<TensorSpec>& inputs, const SymbolNames& names,
                    const SymbolLimitsOf& limits);

// The expression's value at these sizes. Symbols that have no size (data decide it) are added with
// size 100.
int64_t value_at(const Expr& e, Sizes& sizes);
std::string sizes_text(const Sizes& sizes, const SymbolNames& names);  // "batch=1, W=224"
// In the form of --dim: {"batch=1", "W=224"}
std::vector<std::string> size_flags(const Sizes& sizes, const SymbolNames& names);

std::vector<TensorSpec> input_specs(const Graph& graph);
// Replaces the symbols in dimensions by the names that people use.
std::vector<TensorSpec> with_names(std::vector<TensorSpec> specs, const SymbolNames& names);

}  // namespace tw
