// Attention as one kernel of a device whose blocks of threads share a memory: its tile and its
// schedule. kernels/algorithms/streaming_attention.h defines it, and
// docs/internals/gpu-attention.md explains it.
#pragma once
#include <string>

#include "ir/group.h"
#include "ir/target.h"
#include "kernels/algorithms/streaming_attention.h"
#include "kernels/device/tiles.h"

namespace tw {

// Copies that a thread has in flight at one time. Each takes registers.
inline constexpr int64_t kCopiesAtOnce = 8;

// The scores that a block computes in a step: `rows` queries times `keys` keys
struct AttentionTile {
  int64_t rows = 0, keys = 0;
  // Rows of a thread, or of the threads that execute an instruction together
  int64_t thread_rows = 0;
  int64_t across = 1;  // single threads that share a row
  bool by_instruction = false;
  bool operator==(const AttentionTile&) const = default;
};

// The best tile by a count of cycles like that of kernels/device/tile_model.h. nullopt: the device
// cannot run one; `why` says what is missing.
std::optional<AttentionTile> attention_tile(const Target& target, const AttentionProblem& problem,
                                            std::string* why = nullptr);
// The tiles that fit the device: the default one (attention_tile) first, the others by cycles.
// Empty: none fits, and `why` says what is missing.
std::vector<AttentionTile> attention_tiles(const Target& target, const AttentionProblem& problem,
                                           std::string* why = nullptr);

// The instruction for both products; nullopt: single threads multiply.
std::optional<TileInstruction> attention_instruction(const Target& target,
                                                     const AttentionProblem& problem);
// padded_depth and padded_columns round the sizes of a head up to whole instructions, or to vectors
// of threads if `by` is null. value_vector is the vector length of a thread's columns.
int64_t padded_depth(const AttentionProblem& problem, const TileInstruction* by);
int64_t padded_columns(const AttentionProblem& problem, const AttentionTile& tile,
                       const TileInstruction* by);
int64_t value_vector(const AttentionProblem& problem, const AttentionTile& tile);
// True: the threads that have the weights also multiply them with the values, so weights stay in
// registers.
bool keeps_weights(const TileInstruction& by);

// nullopt: the kernel cannot be computed in blocks.
std::optional<Lowered<StreamingAttentionStages>> attention_in_blocks(GroupBuilder& b,
                                                                     const Node& product,
                                                                     const Target& device);
// Kernels with other rows of a block and keys of a step, which are not choices of a schedule. The
// one with the fewest cycles comes first. Empty: the group is not attention in blocks on the
// device.
std::vector<Lowered<StreamingAttentionStages>> attention_in_other_blocks(const Graph& graph,
                                                                         const Group& group,
                                                                         const Target& device);

void schedule_attention_in_blocks(ScheduleBuilder& s, const StreamingAttentionStages& m);

}  // namespace tw
