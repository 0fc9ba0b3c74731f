// The error for two extents that an operator needs to be equal, where no proof shows that they are.
#pragma once
#include <optional>
#include <utility>

#include "ir/expr.h"
#include "support/diag.h"

namespace tw {

class UnequalDims : public llvm::ErrorInfo<UnequalDims, DiagError> {
 public:
  static char ID;
  UnequalDims(Diag diag, Expr first, Expr second)
      : ErrorInfo({std::move(diag)}), first(std::move(first)), second(std::move(second)) {}
  Expr first, second;
};

// Makes an error with `message` about two extents. It is an UnequalDims where they may be equal for
// some sizes, so that a run can compare them; otherwise it is a plain error.
Error unequal_dims(const Expr& first, const Expr& second, std::string message);

// The two extents of an UnequalDims, which is kept; nullopt: another error
std::optional<std::pair<Expr, Expr>> extents_to_compare(Error& error);

}  // namespace tw
