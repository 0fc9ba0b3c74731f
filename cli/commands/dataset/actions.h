// The actions of tilewright dataset: their shared flags, and the files that they are in.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "autotune/dataset/dataset.h"
#include "autotune/dataset/split.h"
#include "cli/app.h"
#include "support/json.h"

namespace tw {

struct DatasetArgs {
  std::string action, set, folder, networks, layers_of, time, worker, features;
  double share = 1;
  int of_platform = 1, count = 10000, most_ranked = 0;
  std::vector<std::string> platforms, splits, algorithms, tuners,
      lowered_for = {"x86-64-v4", "x86-64-v3"};
  // Test families: the TVM paper's five networks, a transformer, and a network of other shapes
  std::vector<std::string> test = {"resnet", "mobilenet", "lstm", "dqn", "dcgan", "bert", "unet"},
                           validation = {"densenet", "vit", "gpt"};
  int extended_by = 32;
  int from_networks = 240, sampled = 240, programs = 160, test_programs = 512;
  std::optional<uint64_t> seed;
};

// The rule by the families that --test and --validation name
SplitRule rule_of(const DatasetArgs& args);
// Numbers of tasks by the name of their split
Json splits_json(const std::vector<int>& counts);

std::string percent(double share);  // 0.125: "12.5 %"

// An action on an open set: prints its result, and returns the exit code.
using DatasetRun = Expected<int>(const DatasetArgs& args, DataSet& set, Console& console);
DatasetRun make_dataset, extend_dataset, measure_dataset, split_dataset;       // measure.cpp
DatasetRun stat_dataset, check_dataset, rank_dataset;                          // judge.cpp
DatasetRun sample_dataset;                                                     // sample.cpp
DatasetRun export_dataset, import_dataset, write_feature_files, show_program;  // exchange.cpp

}  // namespace tw
