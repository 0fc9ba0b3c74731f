// Operator inputs that hold indices into another input. Negative indices count from the end; an
// index outside is an error.
#pragma once
#include "ir/graph/graph.h"

namespace tw {

struct IndexInput {
  size_t input = 0;     // number of the input with the indices
  size_t axis = 0;      // axis of input 0 that they index
  int64_t column = -1;  // the column of their last axis that is used; -1: all columns
};
// Absent inputs are null.
std::vector<IndexInput> index_inputs(const OpAttrs& attrs,
                                     const std::vector<const TensorType*>& inputs);

// The least and the largest index; nullopt: there is no index.
struct Extremes {
  int64_t least = 0, most = 0;
};
std::optional<Extremes> extremes(const TensorType& type, std::span<const std::byte> bytes,
                                 int64_t column = -1);

// Checks constant indices against a known extent. Success: all lie in it.
Error check_indices(const IndexInput& at, const Extremes& found, const TensorType& data);

}  // namespace tw
