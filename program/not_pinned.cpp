#include "program/not_pinned.h"

namespace tw {

char NotPinned::ID;

std::string to_string(const std::vector<UnpinnedKernel>& kernels) {
  std::string text = llvm::formatv("{0,-16}  {1,-12}  {2,-16}  {3}\n", "task", "algorithm",
                                   "kernel", "not pinned")
                         .str();
  for (const UnpinnedKernel& k : kernels)
    text += llvm::formatv("{0,-16}  {1,-12}  {2,-16}  {3}{4}\n", k.task, k.algorithm, k.kernel,
                          k.name, k.problem.empty() ? "" : ": " + k.problem)
                .str();
  return text;
}

Json to_json(const std::vector<UnpinnedKernel>& kernels) {
  Json::Array list;
  for (const UnpinnedKernel& k : kernels)
    list.push_back(Json::Object{{"task", k.task},
                                {"algorithm", k.algorithm},
                                {"kernel", k.kernel},
                                {"name", k.name},
                                {"problem", k.problem}});
  return list;
}

}  // namespace tw
