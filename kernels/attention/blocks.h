// Attention as one kernel of a device, whose blocks of threads share a memory: a block has some
// queries, and keys and values pass by in steps, with a running maximum and sum of each row
// (Dao, "FlashAttention-2", arXiv:2307.08691, after Milakov and Gimelshein, arXiv:1805.02867).
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

class GroupBuilder;
class Choices;
struct AttentionParts;

// What a block makes in a step.
struct AttentionTile {
  int64_t rows = 0, keys = 0;
  int64_t thread_rows = 0;  // of a thread; with an instruction: of those that do it together
  int64_t across = 1;       // single threads that share a row
  bool by_instruction = false;
  bool operator==(const AttentionTile&) const = default;
};

struct AttentionProblem {
  std::optional<int64_t> batches, rows, keys;  // that are known
  int64_t depth = 1, columns = 1;              // of a head
  DType type = DType::f32;                     // of what is multiplied
  bool tf32 = false;                           // both products round to it
  ValueId left, right, values;                 // queries, keys and values as they are read
};
// Of the two products around a softmax. inside: of the group, whose roundings of operands are
// theirs. nullopt: operands of several types, or heads of free sizes.
std::optional<AttentionProblem> attention_problem(const Graph& graph, const Node& scores,
                                                  const Node& product,
                                                  const std::function<bool(ValueId)>& inside);
// The best one by a count like that of kernels/device/tile_model.h. nullopt: the
// device has no block for it; `why` says what is missing.
std::optional<AttentionTile> attention_tile(const Target& target, const AttentionProblem& problem,
                                            std::string* why = nullptr);

struct AttentionBlockStages {
  const char* family() const { return "attention_blocks"; }
  struct Copy {
    Stage stage;
    Loops loops;  // over rows, then elements that lie side by side
  };
  struct Instruction {
    Loop loop;
    std::string intrinsic, name;
  };
  struct Apart {
    BufferName buffer;
    int64_t elements = 0;  // rows begin that far from a multiple of twice as many
  };
  std::vector<Copy> copies;
  Loops blocks;
  std::vector<Loops> threads;  // those over threads: of a nest, one for each axis
  Loops unrolled, vectors;
  std::vector<Instruction> instructions;
  std::vector<BufferName> shared, own;  // by the block's threads, of one thread
  std::vector<Apart> apart;
  int64_t thread_count = 1;
};

// nullopt: not in blocks.
std::optional<Lowered<AttentionBlockStages>> lower_attention_in_blocks(GroupBuilder& b,
                                                                       const Node& product);
Expected<Schedule> attention_block_schedule(const Kernel& kernel, const AttentionBlockStages& m,
                                            const Target& target, Choices* choices = nullptr);

}  // namespace tw
