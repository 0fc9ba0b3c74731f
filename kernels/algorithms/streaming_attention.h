// Attention whose keys pass by in steps, as it is defined: its stages
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "ir/graph/graph.h"
#include "kernels/common/handles.h"
#include "kernels/common/lowered.h"

namespace tw {

class GroupBuilder;

struct AttentionProblem {
  std::optional<int64_t> batches, rows, keys;  // unset: free
  int64_t depth = 1, columns = 1;              // sizes of a head
  DType type = DType::f32;                     // type of the operands
  bool tf32 = false;                           // true: both products round operands to tf32
  ValueId left, right, values;                 // queries, keys and values as the kernel reads them
};
// The problem of the two products around a softmax. inside: true for values of the group, whose
// roundings of operands become part of the problem. nullopt: the operands have several types, or
// the heads have free sizes.
std::optional<AttentionProblem> attention_problem(const Graph& graph, const Node& scores,
                                                  const Node& product,
                                                  const std::function<bool(ValueId)>& inside);

struct StreamingAttentionStages {
  const char* family() const { return "attention_blocks"; }
  // A stage over the block's rows; maybe over keys of the step or columns of the result, which some
  // stages combine
  struct Part {
    Stage stage;
    Loop row, column;
  };
  struct Product : Part {
    Loop depth;
  };
  AttentionProblem problem;
  int64_t rows = 1, keys = 1;  // queries of a block and keys of a step
  Loops blocks;                // batches and blocks of queries
  Product key_products, value_products;
  std::vector<Part> of_scores;  // other stages over rows and keys
  std::vector<Part> of_output;  // other stages over rows and columns
  std::vector<Part> of_rows;    // stages over rows alone
  Part top, sum;                // combine the keys of a row: its largest score, its sum of weights
  Part y;
  std::vector<BufferName> row_state;  // numbers that all keys and columns of a row use
};

// rows: queries of a block. keys: those of a step
Lowered<StreamingAttentionStages> define_streaming_attention(GroupBuilder& b, const Node& product,
                                                             const AttentionProblem& problem,
                                                             int64_t rows, int64_t keys);

}  // namespace tw
