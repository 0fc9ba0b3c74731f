// Winograd's convolution as it is defined: its stages
#pragma once
#include "ir/graph/graph.h"
#include "kernels/common/handles.h"
#include "kernels/common/lowered.h"
#include "kernels/conv/conv.h"

namespace tw {

class GroupBuilder;

// A one-dimensional transform: along one axis of a tile, at each point of the other axis (`fixed`)
struct WinogradAxisTransform {
  Stage stage;
  Loop tile, block, fixed, along, lane;
};

struct WinogradStages {
  const char* family() const { return "winograd"; }
  using Transform = WinogradAxisTransform;
  bool arranged = false;    // the weights lie as the target reads them
  Stage pad;                // the input with zeros around it
  Transform rows, columns;  // input transforms, one after the other
  BufferName input, bias;   // parameters; no bias: there is none, or it is a number
  int64_t out_block = 0;    // the blocks in which the output's channels lie; 0: none
  BufferName weights;       // transformed, in panels
  Stage acc;                // the products of each point
  Loop acc_row, acc_column, acc_tile, acc_block, acc_lane, depth_block, depth_lane;  // no lanes yet
  SumInstruction instruction;       // for the products
  int64_t depth = 1;                // channels that one step of depth_lane covers
  Transform out_rows, out_columns;  // output transforms
  ConvOutput out;
};

// tile: 2, 4 or 6
Expected<Lowered<WinogradStages>> define_winograd(GroupBuilder& b, const Node& node, int tile);

}  // namespace tw
