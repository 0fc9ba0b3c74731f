// Stages of attention in blocks (kernels/attention/lower_blocks.cpp), whose products are made by
// single threads or by an instruction.
#pragma once
#include "kernels/attention/blocks.h"
#include "kernels/attention/causal.h"
#include "kernels/attention/deal.h"
#include "kernels/attention/parts.h"

namespace tw {

// Of a thread, under way at one time: each takes registers.
inline constexpr int64_t kCopiesAtOnce = 8;

class AttentionBlocks {
 public:
  AttentionBlocks(GroupBuilder& b, const AttentionParts& parts, const AttentionProblem& problem,
                  const AttentionTile& tile);
  virtual ~AttentionBlocks() = default;
  Lowered<AttentionBlockStages> run();

 protected:
  // s = the products of a step's queries and keys, as `scores_` deals them out.
  virtual void key_products() = 0;
  // Of a thread: hands the weights in s over to the product with the values.
  virtual void hand_over(const Index& thread) = 0;
  // Adds the products of the weights and a step's values to o.
  virtual void value_products() = 0;

  // Loops of a nest, by its name: over the threads, over a thread's rows and columns.
  std::vector<Axis> threads(const std::string& name);
  std::vector<Axis> rows(const std::string& name);
  std::vector<Axis> columns(const std::string& name, const Deal& deal,
                            AxisRole role = AxisRole::spatial);
  std::vector<Axis> unrolled(const std::vector<Axis>& axes);
  // In the registers of a thread, and in the memory that the block's threads share.
  BufferId own(const std::string& name, DType type, const Shape& shape);
  BufferId shared(const std::string& name, DType type, const Shape& shape);
  Index simplified(Index index) const;
  // Rows of the tile begin in other banks than those before them.
  void keep_apart(BufferId tile, int64_t elements);
  // Sets s, or o, to zero.
  void clear(const std::string& name, BufferId sums, const Deal& deal, const Index& thread);

  GroupBuilder& b_;
  AttentionParts parts_;
  AttentionProblem problem_;
  AttentionTile tile_;
  int64_t depth_ = 0, columns_ = 0;  // padded
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

// Those that fit the device: the usual one (attention_tile), then by cycles. Empty: none; `why`
// says what is missing.
std::vector<AttentionTile> attention_tiles(const Target& target, const AttentionProblem& problem,
                                           std::string* why = nullptr);

// The instruction of both products; none: single threads multiply.
std::optional<TileInstruction> attention_instruction(const Target& target,
                                                     const AttentionProblem& problem);
// Sizes of a head in whole instructions (by null: vectors of threads); of a thread's vector of
// columns.
int64_t padded_depth(const AttentionProblem& problem, const TileInstruction* by);
int64_t padded_columns(const AttentionProblem& problem, const AttentionTile& tile,
                       const TileInstruction* by);
int64_t value_vector(const AttentionProblem& problem, const AttentionTile& tile);
// Whether threads keep the weights, as an instruction that multiplies them with the values wants.
bool keeps_weights(const TileInstruction& by);

std::vector<Axis> joined(std::vector<Axis> axes, const std::vector<Axis>& more);
std::vector<Axis> axes_of(const std::string& name, const std::vector<int64_t>& extents,
                          AxisRole role = AxisRole::spatial);

}  // namespace tw
