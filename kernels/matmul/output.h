// The last stage of a matrix product, whatever computes its sums.
#pragma once
#include "kernels/common/group_builder.h"

namespace tw {

// Stage y: followers on sum(index), where the index is [outer batches.., row, column]. `joined`:
// all batches are rows, there are no outer ones, and tensors of the output's shape are seen with
// the same collapsed rows.
void write_product(GroupBuilder& b, const Node& node, bool joined,
                   const std::function<Expr(const Index& at)>& sum);

}  // namespace tw
