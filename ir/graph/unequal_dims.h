// Extents that an operator needs to be equal, where nobody can show that they are.
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

// Says `message`, about two extents: an UnequalDims where these may be equal for some sizes, so
// that a run could look at them, otherwise a plain error.
Error unequal_dims(const Expr& first, const Expr& second, std::string message);

// The two extents of such an error, which stays as it is.
std::optional<std::pair<Expr, Expr>> extents_to_compare(Error& error);

}  // namespace tw
