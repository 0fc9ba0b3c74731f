// Sizes that a reader can picture for the dimensions that a model leaves free, where a number is to
// be told.
#pragma once
#include <string>
#include <vector>

#include "ir/dim_names.h"
#include "ir/graph/graph.h"

namespace tw {

using Sizes = std::map<std::string, int64_t, std::less<>>;  // by symbol

// One batch, 224 pixels a side, 128 of anything else: by the dimensions' names, else by where they
// are; within the limits.
Sizes example_sizes(const std::vector<TensorSpec>& inputs, const SymbolNames& names,
                    const SymbolLimitsOf& limits);

// What the expression is at these sizes; symbols that are not there (sizes that data decide) join
// them as 100.
int64_t value_at(const Expr& e, Sizes& sizes);
std::string sizes_text(const Sizes& sizes, const SymbolNames& names);  // "batch=1, W=224"
// As --dim has them: {"batch=1", "W=224"}
std::vector<std::string> size_flags(const Sizes& sizes, const SymbolNames& names);

std::vector<TensorSpec> input_specs(const Graph& graph);
// Inputs' types with the names that people use.
std::vector<TensorSpec> with_names(std::vector<TensorSpec> specs, const SymbolNames& names);

}  // namespace tw
