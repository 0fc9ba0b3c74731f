// One walk over everything that names a buffer: loads, stores and prefetches.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "ir/kernel/kernel.h"

namespace tw {

struct BufferAccess {
  BufferId buffer;
  std::vector<Expr> indices;
};

// fn maps each access; nullopt keeps it. Loads inside of indices are mapped before the
// access around them.
Stmt rewrite_accesses(const Stmt& root,
                      const std::function<std::optional<BufferAccess>(
                          BufferId buffer, const std::vector<Expr>& indices)>& fn);

}  // namespace tw
