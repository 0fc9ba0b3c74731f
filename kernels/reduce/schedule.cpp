// Reductions and normalisations: when the output's rows enclose the reduction, every stage of a row
// runs inside the row's loop and its temps stay in registers or on the stack; else each stage is a
// nest of its own.
#include <algorithm>

#include "kernels/families.h"

namespace tw {
namespace {

constexpr int64_t kStackBytes = 32 << 10;

// A stage NAME_part has its partial sums in vector lanes; the stage NAME folds them.
void map_stage(ScheduleBuilder& s, const std::string& label, bool in_registers) {
  std::vector<std::string> reduce = s.reduce_loops_of(label);
  if (reduce.empty()) return;
  Stmt store;
  for (const Stmt& candidate : stores_of(s.kernel().body))
    if (candidate->label == label) store = candidate;
  std::vector<std::string> all = s.loops_of(label);
  auto first = std::find(all.begin(), all.end(), reduce.front());
  bool partial = label.size() > 5 && label.compare(label.size() - 5, 5, "_part") == 0;
  if (!partial || first == all.begin()) return;
  std::string lane = *(first - 1);
  s.accumulate(label, reduce, {}, lane);
  s.unroll_part(reduce.back());
  if (!in_registers) return;
  s.set_scope(label, "register");
  std::string folded = label.substr(0, label.size() - 5);
  for (const std::string& loop : s.reduce_loops_of(folded)) s.vectorize(loop);
}

bool is_row_reduction(const ScheduleBuilder& s, const std::vector<std::string>& labels) {
  // Row axes of the stages are numbered like y's: y has one column axis more, or only extent-1 axes
  // more.
  for (const std::string& label : labels)
    if (label != "y" && label != "e" && label.find("_part") == std::string::npos &&
        s.has_stage(label + "_part"))
      return true;
  return false;
}

}  // namespace

void schedule_reduce(ScheduleBuilder& s) {
  std::vector<std::string> labels;
  for (const Stmt& store : stores_of(s.kernel().body)) labels.push_back(store->label);
  std::vector<std::string> rows = s.loops_of("y");
  std::string column;
  if (is_row_reduction(s, labels) && rows.size() > 1) {
    column = rows.back();
    rows.pop_back();
    bool fits = s.choose_switch("rows_inside", true);
    if (auto e = s.kernel().find_buffer("e")) {
      auto n = as_const(s.kernel().buffer(*e).shape.back());
      fits = n && *n * 4 <= kStackBytes;
    }
    // Only when one row of y reads one row of every stage: try it on the innermost row loop.
    ScheduleBuilder attempt = s;
    for (auto label = labels.rbegin(); label != labels.rend() && fits; ++label)
      if (*label != "y") attempt.compute_at(*label, rows.back());
    bool legal = fits;
    if (legal) {
      ScheduleBuilder probe = attempt;
      Expected<Schedule> result = probe.finish();
      legal = static_cast<bool>(result);
      if (!result) llvm::consumeError(result.takeError());
      for (const std::string& label : labels)
        if (legal && label != "y" && label != "e" && s.has_stage(label + "_part") &&
            attempt.spatial_loops_of(label).size() > rows.size())
          legal = false;
    }
    if (legal) {
      s = attempt;
      for (const std::string& label : labels) map_stage(s, label, true);
      if (s.has_stage("e")) {
        std::string lane = s.loops_of("e").back();
        int64_t lanes = s.target().lanes(4) * s.choose("vectors_e", 1, {2, 4});
        if (auto n = s.extent(lane); n && *n >= lanes) {
          s.split(lane, lanes, Tail::shift, "e_o", "e_v");
          s.vectorize("e_v");
        }
      }
      int64_t lanes = s.target().lanes(4) * s.choose("vectors_y", 1, {2, 4});
      if (auto n = s.extent(column); n && *n >= lanes) {
        s.split(column, lanes, Tail::shift, "y_o", "y_v");
        s.vectorize("y_v");
      }
      s.parallelize(rows, "yp");
      return;
    }
  }
  for (const std::string& label : labels) {
    map_stage(s, label, false);
    std::vector<std::string> reduce = s.reduce_loops_of(label), spatial = s.spatial_loops_of(label);
    bool partial = label.find("_part") != std::string::npos;
    if (reduce.empty()) {
      s.map_nest(label);
    } else if (!partial && !spatial.empty() && label == "acc") {
      // A reduction over outer axes: lanes run along the last axis that stays.
      std::string lane = spatial.back();
      int64_t lanes = s.target().lanes(4) * s.choose("vectors_" + label, 1, {2, 4, 8});
      auto n = s.extent(lane);
      if (n && (*n == lanes || *n % lanes == 0 || *n > lanes)) {
        if (*n != lanes) {
          s.split(lane, lanes, Tail::guard, "acc_o", "acc_v");  // shifted tiles would add twice
          spatial.back() = "acc_o";
          lane = "acc_v";
        } else {
          spatial.pop_back();
        }
        s.accumulate(label, reduce, {}, lane);
      }
      // label_p0, label_p1 ... are loops of the partial sums
      s.parallelize(spatial, label + "_rows");
    }
  }
}

}  // namespace tw
