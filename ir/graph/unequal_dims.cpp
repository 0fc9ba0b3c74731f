#include "ir/graph/unequal_dims.h"

#include "ir/graph/graph.h"

namespace tw {

char UnequalDims::ID = 0;

Error unequal_dims(const Expr& first, const Expr& second, std::string message) {
  Diag diag{DiagCode::invalid_model, std::move(message), {}, {}};
  if (!may_be_equal(first, second)) return make_error(std::move(diag));
  return llvm::make_error<UnequalDims>(std::move(diag), first, second);
}

std::optional<std::pair<Expr, Expr>> extents_to_compare(Error& error) {
  std::optional<std::pair<Expr, Expr>> found;
  error = llvm::handleErrors(std::move(error), [&](std::unique_ptr<UnequalDims> e) -> Error {
    found = {e->first, e->second};
    return Error(std::move(e));
  });
  return found;
}

}  // namespace tw
