// Statistics of a data set: how many labels it has, how sure they are, and how alike its platforms
// are.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "autotune/dataset/dataset.h"
#include "driver/dataset/make.h"

namespace tw {

// A platform's tasks of one family of networks ("sampled" is one), or all of its tasks
struct FamilyStat {
  std::string network;
  int tasks = 0;
  int64_t programs = 0;                     // programs with a label
  std::map<std::string, int64_t> failures;  // failed programs by status
  double spread = 0;    // median program's time over the best; geometric mean of tasks
  double standard = 0;  // default program's time over the best; likewise
  int64_t again = 0;    // programs with a second label
  double noise = 0;     // median of |second / first - 1|
  // Among second labels: the least time over that of the program with the best first label; a mean
  double top1 = 0;
  int64_t contended = 0;
};
struct PlatformStat {
  Platform platform;
  FamilyStat all;
  std::vector<FamilyStat> families;
};
// Spearman's rank correlation of two platforms' times; a mean over the tasks that both have
struct Likeness {
  int64_t a = 0, b = 0;  // platforms
  int tasks = 0;
  double correlation = 0;
  bool trivial() const { return correlation > 0.97; }  // one platform predicts the other
};
struct SetStat {
  int tasks = 0, complete = 0;
  int64_t programs = 0;
  std::vector<int> splits;
  std::vector<PlatformStat> platforms;
  std::vector<Likeness> likeness;
};
Expected<SetStat> statistics(DataSet& set);

// Spearman's rank correlation; ties have the mean of their ranks. At least two pairs.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b);

struct CheckRequest {
  std::vector<std::string> target_folders;
  double share = 0.01;  // part of the programs to check; tasks are drawn at random
  int jobs = 1;
  uint64_t seed = 1;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const std::string&)> watch = nullptr;
};
struct CheckedPlatform {
  Platform platform;
  int tasks = 0;
  int64_t programs = 0, failed = 0;  // failed: programs that worked before
  double correlation = 0;            // mean over tasks
  double deviation = 0;              // median of |now / before - 1|
};
// Measures or estimates programs again on this machine, and compares. Leaves out times of other
// machines, and targets that this version describes in another way. Errors: nothing is left.
Expected<std::vector<CheckedPlatform>> check_labels(DataSet& set, const CheckRequest& request);

}  // namespace tw
