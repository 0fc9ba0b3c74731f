// What a data set is worth: how many labels of what, how sure they are, how alike platforms are.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "autotune/dataset/dataset.h"
#include "driver/dataset/make.h"

namespace tw {

// Of a platform's tasks of one family of networks ("sampled" among them) or of all.
struct FamilyStat {
  std::string network;
  int tasks = 0;
  int64_t programs = 0;                     // with a label
  std::map<std::string, int64_t> failures;  // by status
  double spread = 0;    // the median program over the best; geometric mean of tasks
  double standard = 0;  // the default program over the best; likewise
  int64_t again = 0;    // with a second label
  double noise = 0;     // median of |second / first - 1|
  double top1 = 0;  // the best by the first label, in second labels: the least of them over its own
  int64_t contended = 0;
};
struct PlatformStat {
  Platform platform;
  FamilyStat all;
  std::vector<FamilyStat> families;
};
// Of the tasks that both have: the mean over tasks of the rank correlation (Spearman).
struct Likeness {
  int64_t a = 0, b = 0;  // platforms
  int tasks = 0;
  double correlation = 0;
  bool trivial() const { return correlation > 0.97; }  // to know one is to know the other
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
  double share = 0.01;  // of the programs, of tasks drawn at random
  int jobs = 1;
  uint64_t seed = 1;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const std::string&)> watch = nullptr;
};
struct CheckedPlatform {
  Platform platform;
  int tasks = 0;
  int64_t programs = 0, failed = 0;  // failed: worked before
  double correlation = 0;            // mean over tasks
  double deviation = 0;              // median of |now / before - 1|
};
// Measures or estimates again on this machine, and compares. Times of other machines and cycles are
// left out. Errors: nothing is left.
Expected<std::vector<CheckedPlatform>> check_labels(DataSet& set, const CheckRequest& request);

}  // namespace tw
