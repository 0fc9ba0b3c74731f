// Sequences whose length only the run knows. They are two tensors: the items as rows, each filled
// up to the largest extents, and the items' sizes.
#pragma once
#include "frontend/onnx/node_import.h"

namespace tw::onnx_import {

struct RunList {
  Val rows;                // [N, largest extents...]
  Val sizes;               // i64 [N, largest rank]: extents of an item, then -1
  int64_t least_rank = 0;  // rank of the smallest item
};

// A list (Builder::ListKind::rows) as a RunList, or one made of the items of a non-empty sequence.
// Failures: items of several types.
RunList run_list(NodeImport& n, Val list);
RunList run_list(NodeImport& n, const std::vector<Val>& items);
RunList no_items(NodeImport& n, const TensorType& like);  // `like` gives type and rank
Val as_value(NodeImport& n, const RunList& list);         // a list of kind rows

Expr length(NodeImport& n, const RunList& list);
// Each extent of `most` must be at least that of the list
RunList filled_up(NodeImport& n, const RunList& list, const Shape& most, int64_t least_rank);
RunList joined(NodeImport& n, const RunList& front, const RunList& back);

// Positions are i64 scalars, counted from the beginning; an invalid one means the end.
Val item_at(NodeImport& n, const RunList& list, Val at);
RunList inserted(NodeImport& n, const RunList& list, Val at, Val item);
RunList erased(NodeImport& n, const RunList& list, Val at);
// Joins the items to one tensor along one of their axes, or along a new one if `fresh`. The run
// ends if their other extents differ.
Val concatenated(NodeImport& n, const RunList& list, int64_t axis, bool fresh);

}  // namespace tw::onnx_import
