// Inputs of operators that say places of another input by number: negative ones count from the end,
// those outside are an error.
#pragma once
#include "ir/graph/graph.h"

namespace tw {

struct IndexInput {
  size_t input = 0;     // the indices
  size_t axis = 0;      // of input 0, that they lie in
  int64_t column = -1;  // of the indices' last axis; -1: all of them
};
// Inputs may be absent (null).
std::vector<IndexInput> index_inputs(const OpAttrs& attrs,
                                     const std::vector<const TensorType*>& inputs);

// The least and the largest of them; nullopt: there are none.
struct Extremes {
  int64_t least = 0, most = 0;
};
std::optional<Extremes> extremes(const TensorType& type, std::span<const std::byte> bytes,
                                 int64_t column = -1);

// Of constant indices for an extent that is known; success where all lie in it.
Error check_indices(const IndexInput& at, const Extremes& found, const TensorType& data);

}  // namespace tw
