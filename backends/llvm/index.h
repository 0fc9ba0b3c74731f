// Index arithmetic as a polynomial: constant + sum of coefficient * product of factors. The terms
// show what an access does in each loop. Loop-invariant parts are summed first, so that they leave
// inner loops.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ir/kernel/kernel.h"

namespace tw::codegen {

struct IndexTerm {
  std::vector<Expr> factors;  // variables, or operations that are not sums and products
  int64_t coefficient = 1;
  int depth = 0;  // depth of the innermost loop that it depends on; 0: none
};

struct IndexForm {
  int64_t constant = 0;
  std::vector<IndexTerm> terms;  // outermost loops first
};

using LoopDepths = std::map<std::string, int, std::less<>>;  // by loop variable, 1: outermost

IndexForm index_form(const Expr& e, const LoopDepths& depths);
// The distance in elements from the buffer's start to the element, row-major
IndexForm offset_form(const Buffer& buffer, const std::vector<Expr>& indices,
                      const LoopDepths& depths);

}  // namespace tw::codegen
