// Sums of products of integers in the form that a tensor instruction of the target needs. Lowering
// brings kernels into this form, and the search space tiles it.
//
// The form is for an instruction `acc[o] += x[i] * w[o, i]`, with `lanes` each of o and i, whose
// operands lie in memories of their own:
// * The reduction's innermost loop has `lanes` steps over adjacent channels. The weights are packed
//   as [o blocks][i blocks, taps ...][lanes o][lanes i].
// * Stage pad makes the padded input (xp), so no tap needs a check. Outside the input it holds the
//   zero point. Where windows have one tap, it leaves out the elements that strides skip.
// * The product is x * w alone. y adds corr[o] = -zero_point * sum of w[o], which is made from the
//   weights at compile time.
// * The sums and the padded input reach to whole tiles. The part beyond the result is computed and
//   not stored.
#pragma once
#include "ir/target.h"
#include "kernels/common/lowered.h"

namespace tw {

// The operands that the instruction needs, from the target's data
struct TensorInstruction {
  const Intrinsic* intrinsic = nullptr;
  int64_t lanes = 0;              // outputs, and equally many inputs
  std::string left, right, sums;  // memories of the operands
};
// The target's first instruction for products of i8. weights false: the first for maxima, acc[o]
// max= x[o]. nullopt: there is none.
std::optional<TensorInstruction> tensor_instruction(const Target& target, bool weights);

// A sum over windows and channels or, without weights, a maximum over windows
struct TensorProblem {
  bool weights = true;
  // Output and input channels, in lanes of the instruction; maxima: depth 1
  int64_t blocks = 1, depth = 1;
  // By spatial axis; the rows of a matrix are one axis. `strides` are those of the padded input: 1
  // where windows have one tap.
  std::vector<int64_t> out, kernel, strides, dilations;
  bool skips = false;  // the copy of the input skips elements of the last axis
};

// A tile of the sums: what the memories hold at once for each virtual thread
struct TensorTile {
  int64_t threads = 1;        // virtual threads
  int64_t blocks = 1;         // blocks of output channels
  int64_t depth = 1;          // blocks of input channels in one step of the sums
  std::vector<int64_t> rows;  // along each spatial axis
  // The axis whose tiles the virtual threads share: 0 for channels, 1 + i for spatial axis i
  int split = -1;
  int64_t slots = 1;  // slots between parts: loads run this many tiles ahead of stores
  // True: tiles of channels are the innermost loop. The input of a spatial tile then stays, and
  // weights are loaded again for each. False: weights stay.
  bool input_stays = false;
};
// The tile with the least time by a simple count: the longest of the array's steps, the bytes of
// operands and results, and the stores, plus the work that nothing hides. nullopt: no tile fits the
// memories.
std::optional<TensorTile> tensor_tile(const TensorProblem& problem,
                                      const TensorInstruction& instruction, const Target& target);

// Sets the axis that the virtual threads share. False: no axis has tiles for them, or the tile does
// not fit the memories.
bool complete_tile(TensorTile& tile, const TensorProblem& problem,
                   const TensorInstruction& instruction, const Target& target);
// The most rows, in whole tiles, to which sums of `rows` rows may extend
int64_t most_rows(int64_t rows);

// The facts in a kernel's stages acc and y, before they are in the form or in it
struct TensorSums {
  TensorProblem problem;
  // True: [n, channel block, spatial ..., lane]. False: [row, channel].
  bool blocked = true;
  std::vector<std::string> spatial, taps;  // loops of acc by spatial axis; "": no tap
  // Loops of acc: the channel block and its lane; not blocked: the channel and none
  std::string channel, lane;
  // Reduce loops: depth and its lane; not blocked: the channel and none; maxima: none
  std::string depth, depth_lane;
  StoreRef acc, y;
  // Loads of the input and of the weights. For maxima the latter has no buffer.
  expr::Load left, right;
  int64_t zero_point = 0;  // the input's, subtracted in the product
};
std::optional<TensorSums> tensor_sums(const Kernel& kernel, int64_t lanes);

// Brings the group into the form. A group that does not fit stays as it is, and the back end
// reports why.
void to_tensor_form(GroupKernel& group, const Target& target);

}  // namespace tw
