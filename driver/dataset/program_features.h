// Writes the features of a data set's programs as numpy files, to train predictors outside of this
// program. The same functions compute them as in a search.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "autotune/dataset/dataset.h"

namespace tw {

enum class FeatureFile : uint8_t {
  steps,     // a row for each step of the schedule
  loops,     // a row for each innermost statement
  one_shot,  // one row
  task,      // one row, the same for all programs of a task
};
inline constexpr int kFeatureFileCount = 4;
const char* feature_file_name(FeatureFile kind);
std::optional<FeatureFile> feature_file_from_name(std::string_view name);

struct FeatureRequest {
  FeatureFile kind{};
  std::string folder;
  std::vector<std::string> target_folders;
  int jobs = 1;
  std::function<void(const std::string&)> watch = nullptr;
};
struct FeatureCounts {
  int64_t programs = 0, rows = 0, columns = 0;
};
// Writes into the folder
//   ids.npy       i64[programs]       programs whose schedule applies, task by task
//   offsets.npy   i64[programs + 1]   where the rows of each program begin
//   values.npy    f32[rows, columns]
//   columns.txt   a name a line
//   hardware.json what each platform can do, plain numbers by name in the order of hardware_row
// Errors: a folder that cannot be written, a target that is not known here.
Expected<FeatureCounts> write_features(DataSet& set, const FeatureRequest& request);

}  // namespace tw
