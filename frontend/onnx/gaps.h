// The gaps of a model: all that cannot be compiled, with equal problems of one operator together.
#pragma once
#include <string>
#include <vector>

#include "frontend/frontend.h"

namespace tw::onnx_import {

class Gaps {
 public:
  void add(DiagCode code, const std::string& op, const std::string& problem,
           const std::string& advice, const std::string& node);
  void add(const std::vector<Gap>& others);
  bool empty() const { return list_.empty(); }
  std::vector<Gap> release() { return std::move(list_); }
  Error error(const std::string& path) const;  // one Diag for each gap

 private:
  std::vector<Gap> list_;
};

}  // namespace tw::onnx_import
