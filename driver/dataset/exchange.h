// A data set as a folder of compressed lines of JSON. In this form it is kept with sources, and
// read by other programs (autotune/dataset/tileset.py).
//   manifest.json       versions, counts, platforms, checksums
//   tasks.jsonl.gz      a line a task, with its text
//   kernels.jsonl.gz    the lowered kernels, each once
//   programs.jsonl.gz   a line a task: ids, sources and schedules of its programs
//   labels-N.jsonl.gz   labels of platform N, a line a task and pass: ids and times
#pragma once
#include <optional>
#include <string>

#include "driver/dataset/convert.h"

namespace tw {

struct ExchangeCounts {
  int64_t tasks = 0, programs = 0, labels = 0;
  uint64_t bytes = 0;                      // size of the files
  std::optional<ConvertCounts> converted;  // an import whose folder has an older language
};
// Equal sets give equal files. Errors: a folder that cannot be written.
Expected<ExchangeCounts> export_set(DataSet& set, const std::string& folder);
// Adds the parts that the set does not have; labels of the same program, platform and pass stay.
// Returns the counts of the folder. Schedules of an older language are converted. Errors: a missing
// or damaged file, found before anything is added; a newer language.
Expected<ExchangeCounts> import_set(DataSet& set, const std::string& folder,
                                    const ConvertRequest& request);

}  // namespace tw
