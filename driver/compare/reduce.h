// The smallest part of a model that still fails as the whole one does, in compile (refused, a
// crash, a time-out) or in verify.
#pragma once
#include <functional>
#include <map>
#include <string>

#include "support/diag.h"

namespace tw {

struct ReduceRequest {
  std::string model, output, target;
  std::map<std::string, int64_t> dims;
  int seconds = 120;  // what takes longer counts as hanging
};
struct Failure {
  std::string step;  // "" where nothing fails
  int status = 0;    // exit status; below 0: a signal or the time-out
  // What went wrong: the error's code and words without numbers, or what is off; "": nobody said
  std::string text;
  bool operator==(const Failure&) const = default;
};
struct ReducedModel {
  Failure failure;
  size_t nodes = 0, of = 0;
  std::string operators;  // that are left
};
// Runs this program's compile and verify. on_smaller: told how many nodes are left; may be null.
// Errors: nothing fails.
Expected<ReducedModel> reduce_model(const ReduceRequest& request,
                                    const std::function<void(size_t nodes)>& on_smaller);

// Of the output of compile --json or verify --json: the first error's code and message without its
// numbers, or in which way outputs are off. "": it is neither.
std::string failure_of(const std::string& json);

}  // namespace tw
