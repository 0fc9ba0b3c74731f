// The context-relation features of AutoTVM. They describe the main statement. Each buffer has four
// curves between three quantities that grow from loop to loop: touched elements, their reuse, and
// iterations (log2, each sorted). A curve is sampled at 0, 1, ..., 19. A sample is the last point
// of the curve at or before that place: its height, and its distance from the place.
#include <algorithm>
#include <cmath>
#include <limits>

#include "autotune/features/features.h"
#include "autotune/features/statements.h"

namespace tw {
namespace {
using namespace features;
constexpr const char* kCurves[] = {"reuse_of_count", "count_of_reuse", "topdown_of_count",
                                   "count_of_topdown"};

using Axis = std::vector<double>;

void sample(const Axis& x, const Axis& y, int samples, FeatureRow& row) {
  for (int at = 0; at < samples; ++at) {
    size_t j = 0;
    while (j + 1 < x.size() && x[j + 1] <= at) ++j;
    row.push_back(static_cast<float>(y[j]));
    row.push_back(static_cast<float>(at - x[j]));
  }
}

void add_buffer(const Statement& s, const Use& use, int samples, FeatureRow& row) {
  Axis count = {0}, reuse = {0}, topdown = {0};
  double product = 1;
  for (size_t i = 0; i < s.loops.size(); ++i) {
    product *= s.loops[i].extent;
    count.push_back(std::log2(features::count(s, use, i)));
    reuse.push_back(std::log2(features::reuse(s, use, i)));
    topdown.push_back(std::log2(product));
  }
  for (Axis* axis : {&count, &reuse, &topdown}) std::sort(axis->begin(), axis->end());
  sample(count, reuse, samples, row);
  sample(reuse, count, samples, row);
  sample(count, topdown, samples, row);
  sample(topdown, count, samples, row);
}

}  // namespace

FeatureRow curve_row(const Kernel& kernel, const CurveShape& shape) {
  const std::vector<Statement> statements = statements_of(kernel);
  const Statement* main = main_statement(statements);
  FeatureRow row;
  if (main)
    for (size_t t = 0; t < main->touches.size() && t < shape.buffers; ++t)
      add_buffer(*main, main->touches[t].uses.back(), shape.samples, row);
  row.resize(shape.columns(), std::numeric_limits<float>::quiet_NaN());
  return row;
}

std::vector<std::string> curve_feature_names() {
  std::vector<std::string> names;
  const CurveShape shape;
  for (size_t slot = 0; slot < shape.buffers; ++slot)
    for (const char* curve : kCurves)
      for (int at = 0; at < shape.samples; ++at)
        for (const char* what : {"", ".behind"})
          names.push_back("buffer" + std::to_string(slot) + "." + curve + "[" + std::to_string(at) +
                          "]" + what);
  return names;
}

Features curve_features() {
  return {"curve", false, [](const Candidate& candidate) {
            return std::vector<FeatureRow>{curve_row(candidate.run->kernel)};
          }};
}

}  // namespace tw
