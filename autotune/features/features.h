// What the tree models see of a candidate: rows of numbers. Every column has a name; NaN stands for
// what is not there.
#pragma once
#include <string>

#include "autotune/search.h"

namespace tw {

using FeatureRow = std::vector<float>;
struct Features {
  std::string name;
  bool of_point = false;  // the point is enough: neither schedule nor kernel is read
  // One row; several: of the parts of a candidate, whose score is the sum of theirs.
  std::function<std::vector<FeatureRow>(const Candidate&)> rows;
};

// The numbers of the point's knobs as they are. For one space only. The space must outlive the
// result.
Features knob_features(const Space& space);
std::vector<std::string> knob_feature_names(const Space& space);

// AutoTVM's loop features: extents, products and kinds of every loop, and how each buffer is
// touched below it. Columns depend on the loops there are: for one sketch.
Features itervar_features();
FeatureRow itervar_row(const Kernel& kernel, std::vector<std::string>* names = nullptr);

// AutoTVM's context-relation features: how reuse, touched elements and iterations grow together
// from loop to loop, sampled. The same columns for every kernel.
Features curve_features();
FeatureRow curve_row(const Kernel& kernel);
std::vector<std::string> curve_feature_names();

// Ansor's features, a row an innermost statement. The same columns for every kernel.
Features loop_features();
std::vector<FeatureRow> loop_rows(const Kernel& kernel);
std::vector<std::string> loop_feature_names();

}  // namespace tw
