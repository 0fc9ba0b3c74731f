// What the tree models see of a candidate: rows of numbers. Every column has a name; NaN stands for
// what is not there.
#pragma once
#include <string>

#include "autotune/search.h"
#include "ir/target.h"

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
struct CurveShape {
  size_t buffers = 4;  // the written one, then those read
  int samples = 20;    // of each of a buffer's four curves
  size_t columns() const { return buffers * 4 * static_cast<size_t>(samples) * 2; }
};
Features curve_features();
FeatureRow curve_row(const Kernel& kernel, const CurveShape& shape = {});
std::vector<std::string> curve_feature_names();

// Ansor's features, a row an innermost statement. The same columns for every kernel.
Features loop_features();
std::vector<FeatureRow> loop_rows(const Kernel& kernel);
std::vector<std::string> loop_feature_names();

// TLP's features (ASPLOS'23, section 4): a row a step of the schedule, in order: which primitive it
// is, then its parameters as they come. Numbers are as they are; a name is the place of its first
// appearance in the schedule, from 1; a scope is a number too.
inline constexpr size_t kStepParameters = 22;
std::vector<FeatureRow> step_rows(const Schedule& schedule);
std::vector<std::string> step_feature_names();

// One-Shot Tuner's features (CC'22, figure 7): 720 numbers of curves, 20 of the schedule, 8 of the
// task, each part at the right with zeros before it.
FeatureRow one_shot_row(const Kernel& lowered, const Schedule& schedule, const Kernel& scheduled);
std::vector<std::string> one_shot_feature_names();

// What a task is, whatever its schedule: of its lowered kernel. Logarithms to base 2.
FeatureRow task_row(const Kernel& lowered);
std::vector<std::string> task_feature_names();

// What a target can do with so many threads, as plain numbers: its vectors, caches and rates.
FeatureRow hardware_row(const Target& target, int threads);
std::vector<std::string> hardware_feature_names();

}  // namespace tw
