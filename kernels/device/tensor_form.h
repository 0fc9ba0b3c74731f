// Sums of products of integers in the form that a tensor instruction of the target takes. Lowering
// brings kernels into it, the search space tiles it.
//
// For a target with an instruction `acc[o] += x[i] * w[o, i]` (o and i of `lanes`) whose operands
// lie in memories of their own:
//  * the reduction's innermost loop has `lanes` steps over channels that lie side by side, the
//  weights are packed [o blocks][i blocks, taps ...][lanes o][lanes i];
//  * stage pad makes the padded input (xp), so that no tap asks a question, and holds the zero
//  point outside; where windows have one tap, what strides skip is left out; the product is x * w
//  alone,
//    and y adds corr[o] = -zero_point * sum of w[o], made from the weights at compile time;
//  * the sums and the padded input reach to whole tiles: what lies beyond the result is computed
//  and not stored.
#pragma once
#include "ir/target.h"
#include "kernels/common/lowered.h"

namespace tw {

// What the instruction takes, from the target's data.
struct TensorInstruction {
  const Intrinsic* intrinsic = nullptr;
  int64_t lanes = 0;              // of outputs, and of inputs
  std::string left, right, sums;  // the memories of the operands
};
// The target's first one for products of i8; weights false: its like for maxima, acc[o] max= x[o].
// nullopt: none.
std::optional<TensorInstruction> tensor_instruction(const Target& target, bool weights);

// A sum over windows and channels, or, without weights, a maximum over windows.
struct TensorProblem {
  bool weights = true;
  // Of output and input channels, in instructions' lanes; maxima: depth 1
  int64_t blocks = 1, depth = 1;
  // By spatial axis; rows of a matrix are one. Strides of the padded input: 1 where windows have
  // one tap
  std::vector<int64_t> out, kernel, strides, dilations;
  bool skips = false;  // the copy of the input leaves elements of the last axis out
};

// A tile of the sums: what the memories hold at once, for each virtual thread.
struct TensorTile {
  int64_t threads = 1;        // virtual threads
  int64_t blocks = 1;         // of output channels
  int64_t depth = 1;          // of input channels: sums are made in steps of so many
  std::vector<int64_t> rows;  // of each spatial axis
  // The axis whose tiles the virtual threads share: 0 the channels, 1 + a spatial one
  int split = -1;
  int64_t slots = 1;  // of what parts hand over: loads run so many tiles ahead of the stores
  // Tiles of channels are the innermost loop: the input of a spatial tile stays, weights come again
  // for each; else weights stay
  bool input_stays = false;
};
// Least time by a simple count: of the steps of the array, the bytes of operands and results, and
// the stores, the longest, and what no other work hides.
// nullopt: no tile fits the memories.
std::optional<TensorTile> tensor_tile(const TensorProblem& problem,
                                      const TensorInstruction& instruction, const Target& target);

// Fills in the axis that the virtual threads share. False: no axis has tiles for them, or the tile
// does not fit the memories.
bool complete_tile(TensorTile& tile, const TensorProblem& problem,
                   const TensorInstruction& instruction, const Target& target);
// Rows of whole tiles that the sums of so many rows may reach to.
int64_t most_rows(int64_t rows);

// What a kernel's stages acc and y say, before or in the form.
struct TensorSums {
  TensorProblem problem;
  // [n, channel block, spatial ..., lane]; else [row, channel]
  bool blocked = true;
  std::vector<std::string> spatial, taps;  // loops of acc by spatial axis; no tap: ""
  // Loops of acc: the block and its lane; not blocked: the channel, none
  std::string channel, lane;
  // Reduce loops; not blocked: the channel, none; maxima: none
  std::string depth, depth_lane;
  StoreRef acc, y;
  // Loads of the input and the weights (the latter of no buffer for maxima)
  expr::Load left, right;
  int64_t zero_point = 0;  // of the input, subtracted in the product
};
std::optional<TensorSums> tensor_sums(const Kernel& kernel, int64_t lanes);

// The group in the form, or as it is where something does not fit: the back end then says what.
void to_tensor_form(GroupKernel& group, const Target& target);

}  // namespace tw
