// Groups of a convolution that are merged: their channels fill blocks together, and the weights
// between channels of different groups are 0. An instruction covers several steps of the depth at
// once. So nothing is lost if at most as many groups are merged as it covers steps.
#pragma once
#include "kernels/common/integer_product.h"

namespace tw {

// The fewest groups whose input and output channels are whole blocks; 0: no number of groups is.
inline int64_t groups_that_fill(int64_t groups, int64_t in, int64_t in_block, int64_t out,
                                int64_t out_block) {
  for (int64_t n = 1; n <= groups; ++n)
    if (groups % n == 0 && n * in % in_block == 0 && n * out % out_block == 0) return n;
  return 0;
}

// The most groups to merge: the steps of the depth that one instruction covers for such products,
// in blocks of `block` outputs
int64_t most_merged_groups(const Target& target, const LeftNumbers& left, DType right,
                           int64_t block);

}  // namespace tw
