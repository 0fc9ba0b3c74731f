// Groups of a convolution that count as one: their channels fill blocks together, and the weights
// between channels of different ones are 0. An instruction that takes several steps of the depth
// does in one of them what others need several for, so nothing is lost as long as no more groups
// than its steps are merged.
#pragma once
#include "kernels/common/integer_product.h"

namespace tw {

// The fewest whose channels are whole blocks in front and behind; 0: none are.
inline int64_t groups_that_fill(int64_t groups, int64_t in, int64_t in_block, int64_t out,
                                int64_t out_block) {
  for (int64_t n = 1; n <= groups; ++n)
    if (groups % n == 0 && n * in % in_block == 0 && n * out % out_block == 0) return n;
  return 0;
}

// The most groups that may count as one: the steps of the depth that one instruction takes of such
// products, in blocks of so many outputs.
int64_t most_merged_groups(const Target& target, const LeftNumbers& left, DType right,
                           int64_t block);

}  // namespace tw
