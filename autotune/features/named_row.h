// A row of numbers that is built column by column, with the columns' names where these are asked
// for.
#pragma once
#include <string>
#include <vector>

#include "autotune/features/features.h"

namespace tw::features {

class NamedRow {
 public:
  explicit NamedRow(std::vector<std::string>* names) : names_(names) {}  // null: not asked for
  void raw(const std::string& name, double value) {
    values.push_back(static_cast<float>(value));
    if (names_) names_->push_back(name);
  }
  FeatureRow values;

 private:
  std::vector<std::string>* names_;
};

}  // namespace tw::features
