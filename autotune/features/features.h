// The numbers that models see of a candidate, as rows. Every column has a name; NaN stands for a
// missing value.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "autotune/search.h"
#include "ir/target.h"

namespace tw {

using FeatureRow = std::vector<float>;
struct Features {
  std::string name;
  bool of_point = false;  // the point is enough: `rows` reads neither schedule nor kernel
  // One row, or several rows for parts of a candidate. The candidate's score is the sum of the
  // parts' scores.
  std::function<std::vector<FeatureRow>(const Candidate&)> rows;
};

// The features that `tune --features` names
struct NamedFeatures {
  const char* name = "";
  Features (*make)(const Space& space) = nullptr;
};
std::span<const NamedFeatures> feature_sets();
const NamedFeatures* features_named(std::string_view name);  // null: there are none

// The values of the point's knobs, unchanged. They serve one space only, and the space must outlive
// the result.
Features knob_features(const Space& space);
std::vector<std::string> knob_feature_names(const Space& space);

// AutoTVM's loop features: extents, products and kinds of all loops, and the accesses to each
// buffer below a loop. The columns depend on the loops, so they serve one sketch only.
Features itervar_features();
FeatureRow itervar_row(const Kernel& kernel, std::vector<std::string>* names = nullptr);

// AutoTVM's context-relation features: samples of how reuse, touched elements and iterations grow
// together from loop to loop. The columns are the same for every kernel.
struct CurveShape {
  size_t buffers = 4;  // the written buffer, then the read ones
  int samples = 20;    // samples of each of a buffer's four curves
  size_t columns() const { return buffers * 4 * static_cast<size_t>(samples) * 2; }
};
Features curve_features();
FeatureRow curve_row(const Kernel& kernel, const CurveShape& shape = {});
std::vector<std::string> curve_feature_names();

// Ansor's features, with a row for each innermost statement. The columns are the same for every
// kernel.
Features loop_features();
std::vector<FeatureRow> loop_rows(const Kernel& kernel);
std::vector<std::string> loop_feature_names();

// TLP's features (ASPLOS'23, section 4), with a row for each step of the schedule, in order: the
// primitive, then its parameters. Numbers are unchanged. A name becomes the place of its first
// appearance in the schedule, from 1; a scope becomes a fixed number.
inline constexpr size_t kStepParameters = 22;
std::vector<FeatureRow> step_rows(const Schedule& schedule);
std::vector<std::string> step_feature_names();

// One-Shot Tuner's features (CC'22, figure 7): 720 numbers of curves, 20 of the schedule, 8 of the
// task. Each part is aligned to its right end, with zeros before it.
FeatureRow one_shot_row(const Kernel& lowered, const Schedule& schedule, const Kernel& scheduled);
std::vector<std::string> one_shot_feature_names();

// Features of a task for any schedule, from its lowered kernel, as logarithms to base 2
FeatureRow task_row(const Kernel& lowered);
std::vector<std::string> task_feature_names();

// The capabilities of a target with this many threads, as plain numbers: vectors, caches and rates
FeatureRow hardware_row(const Target& target, int threads);
std::vector<std::string> hardware_feature_names();

}  // namespace tw
