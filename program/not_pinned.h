// The error of --frozen when the lock lacks schedules. It keeps the kernels for a table.
#pragma once
#include <string>
#include <vector>

#include "support/diag.h"
#include "support/json.h"

namespace tw {

struct UnpinnedKernel {
  std::string task, algorithm, kernel, name;
  std::string problem;  // why the lock's schedule does not fit; "": the lock has none
};

class NotPinned : public llvm::ErrorInfo<NotPinned, DiagError> {
 public:
  static char ID;
  NotPinned(Diag diag, std::vector<UnpinnedKernel> missing)
      : llvm::ErrorInfo<NotPinned, DiagError>(std::vector{std::move(diag)}),
        kernels(std::move(missing)) {}
  std::vector<UnpinnedKernel> kernels;
};

std::string to_string(const std::vector<UnpinnedKernel>& kernels);  // a table
Json to_json(const std::vector<UnpinnedKernel>& kernels);

}  // namespace tw
