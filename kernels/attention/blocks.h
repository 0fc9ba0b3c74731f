// Attention as one kernel of a device whose blocks of threads share a memory. A block has some
// queries. Keys and values pass by in steps, with a running maximum and sum for each row (Dao,
// "FlashAttention-2", arXiv:2307.08691, after Milakov and Gimelshein, arXiv:1805.02867).
// docs/internals/gpu-attention.md explains it.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"
#include "ir/target.h"
#include "kernels/common/handles.h"
#include "kernels/common/lowered.h"

namespace tw {

class TargetBuilder;
class Choices;
struct AttentionParts;

// The scores that a block computes in a step: `rows` queries times `keys` keys
struct AttentionTile {
  int64_t rows = 0, keys = 0;
  // Rows of a thread, or of the threads that execute an instruction together
  int64_t thread_rows = 0;
  int64_t across = 1;  // single threads that share a row
  bool by_instruction = false;
  bool operator==(const AttentionTile&) const = default;
};

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
// The best tile by a count of cycles like that of kernels/device/tile_model.h. nullopt: the device
// cannot run one; `why` says what is missing.
std::optional<AttentionTile> attention_tile(const Target& target, const AttentionProblem& problem,
                                            std::string* why = nullptr);

struct AttentionBlockStages {
  const char* family() const { return "attention_blocks"; }
  struct Copy {
    Stage stage;
    Loops loops;  // over rows, then over adjacent elements
  };
  struct Instruction {
    Loop loop;
    std::string intrinsic, name;
  };
  struct Apart {
    BufferName buffer;
    int64_t elements = 0;  // rows begin this far from a multiple of twice as many elements
  };
  std::vector<Copy> copies;
  Loops blocks;
  std::vector<Loops> threads;  // loops over threads: for each nest, one for each axis
  Loops unrolled, vectors;
  std::vector<Instruction> instructions;
  std::vector<BufferName> shared, own;  // buffers of a block's threads, and of one thread
  std::vector<Apart> apart;
  int64_t thread_count = 1;
};

// nullopt: the kernel cannot be computed in blocks.
std::optional<Lowered<AttentionBlockStages>> lower_attention_in_blocks(TargetBuilder& b,
                                                                       const Node& product);
Expected<Schedule> attention_block_schedule(const Kernel& kernel, const AttentionBlockStages& m,
                                            const Target& target, Choices* choices = nullptr);

}  // namespace tw
