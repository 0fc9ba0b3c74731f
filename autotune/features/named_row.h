// A row of numbers that is built column by column. It collects the columns' names where a caller
// asks for them.
#pragma once
#include <string>
#include <vector>

#include "autotune/features/features.h"

namespace tw::features {

class NamedRow {
 public:
  explicit NamedRow(std::vector<std::string>* names) : names_(names) {}  // null: no names wanted
  void raw(const std::string& name, double value) {
    values.push_back(static_cast<float>(value));
    if (names_) names_->push_back(name);
  }
  FeatureRow values;

 private:
  std::vector<std::string>* names_;
};

}  // namespace tw::features
