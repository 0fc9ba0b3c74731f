// The stages of attention in blocks (kernels/attention/lower_blocks.cpp). Subclasses make the
// products with single threads or with an instruction.
#pragma once
#include "kernels/attention/blocks.h"
#include "kernels/attention/causal.h"
#include "kernels/attention/deal.h"
#include "kernels/attention/parts.h"

namespace tw {

// Copies that a thread has in flight at one time. Each takes registers.
inline constexpr int64_t kCopiesAtOnce = 8;

class AttentionBlocks {
 public:
  AttentionBlocks(TargetBuilder& b, const AttentionParts& parts, const AttentionProblem& problem,
                  const AttentionTile& tile);
  virtual ~AttentionBlocks() = default;
  Lowered<AttentionBlockStages> run();

 protected:
  // Sets s to the products of a step's queries and keys, dealt out by `scores_`.
  virtual void key_products() = 0;
  // Hands a thread's weights in s over to the product with the values.
  virtual void hand_over(const Index& thread) = 0;
  // Adds the products of the weights and a step's values to o.
  virtual void value_products() = 0;

  // Loops of the nest `name`: over the threads, over a thread's rows, over its columns
  std::vector<Axis> threads(const std::string& name);
  std::vector<Axis> rows(const std::string& name);
  std::vector<Axis> columns(const std::string& name, const Deal& deal,
                            AxisRole role = AxisRole::spatial);
  std::vector<Axis> unrolled(const std::vector<Axis>& axes);
  // A buffer in the registers of a thread, and one in the memory that the block's threads share
  BufferId own(const std::string& name, DType type, const Shape& shape);
  BufferId shared(const std::string& name, DType type, const Shape& shape);
  Index simplified(Index index) const;
  // Shifts the rows of the tile, so that each begins in other banks than the row before it.
  void keep_apart(BufferId tile, int64_t elements);
  // Sets s or o to zero.
  void clear(const std::string& name, BufferId sums, const Deal& deal, const Index& thread);

  TargetBuilder& b_;
  AttentionParts parts_;
  AttentionProblem problem_;
  AttentionTile tile_;
  int64_t depth_ = 0, columns_ = 0;  // padded sizes of a head
  Deal scores_, output_;
  AttentionBlockStages m_;
  BufferId qt_{}, kt_{}, vt_{}, s_{}, o_{};

 private:
  void take_mask();
  Expr seen() const;
  void make_buffers();
  void copy(const std::string& name, BufferId to, int64_t rows, const Expr& first,
            const Expr& row_count, int64_t elements, int64_t element_count, ValueId v,
            bool rows_last);
  void copy_queries();
  void copy_step();
  void begin();
  void scores();
  void weights();
  void end();
  void write(const Index& thread);
  Expr row_of(const Index& thread, const Index& row) const;
  void fold(const std::string& name, BufferId to, BufferId from, Combiner combiner, double identity,
            const Index& thread);
  void to_part(const std::string& name, BufferId from, const Index& at, const Index& thread,
               const std::vector<Axis>& rows);
  void over_parts(const std::string& name, BufferId to, Combiner combiner, const Index& thread);

  Index batch_;
  std::optional<CausalMask> mask_;
  BufferId part_{}, top_{}, sum_{}, now_{}, factor_{}, most_{}, total_{};
};

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

std::vector<Axis> joined(std::vector<Axis> axes, const std::vector<Axis>& more);
std::vector<Axis> axes_of(const std::string& name, const std::vector<int64_t>& extents,
                          AxisRole role = AxisRole::spatial);

}  // namespace tw
