// Sequences whose length only the run knows, as two tensors: the items as rows of one, each filled
// up to the largest extents, and their sizes.
#pragma once
#include "frontend/onnx/node_import.h"

namespace tw::onnx_import {

struct RunList {
  Val rows;                // [N, the most of each extent ...]
  Val sizes;               // i64 [N, largest rank]: an item's extents, -1 behind the last one
  int64_t least_rank = 0;  // of an item; the largest one where all are alike
};

// What a list (Builder::ListKind::rows) holds, or the items of a sequence that is not empty.
// Failures: items of several types.
RunList run_list(NodeImport& n, Val list);
RunList run_list(NodeImport& n, const std::vector<Val>& items);
RunList no_items(NodeImport& n, const TensorType& like);  // of that type and rank
Val as_value(NodeImport& n, const RunList& list);         // of kind rows

Expr length(NodeImport& n, const RunList& list);
// most: no extent less than it has
RunList filled_up(NodeImport& n, const RunList& list, const Shape& most, int64_t least_rank);
RunList joined(NodeImport& n, const RunList& front, const RunList& back);

// Positions: i64, rank 0, counted from the beginning; an invalid one is the end.
Val item_at(NodeImport& n, const RunList& list, Val at);
RunList inserted(NodeImport& n, const RunList& list, Val at, Val item);
RunList erased(NodeImport& n, const RunList& list, Val at);
// The items as one tensor, along an axis of their own or a new one. Where the run finds that their
// other extents differ, it ends.
Val concatenated(NodeImport& n, const RunList& list, int64_t axis, bool fresh);

}  // namespace tw::onnx_import
