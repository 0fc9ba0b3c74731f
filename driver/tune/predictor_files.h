// Predictors as files: libraries of this program's own making, named KIND-NUMBER.so, and the heads
// that chips have got for them (tilewright adapt).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "autotune/models/predictor.h"

namespace tw {

inline constexpr const char* kBestPredictor = "ranker";

// The kinds that are in the folders, sorted.
std::vector<std::string> predictor_kinds(const std::vector<std::string>& folders);

// All members of the kind; of the first folder that has any. head: the file of a chip's own heads;
// "": none. Errors: no such kind, a file that is damaged or no predictor of this version, heads of
// other predictors.
Expected<std::shared_ptr<const PredictorSet>> load_predictors(
    const std::string& kind, const std::vector<std::string>& folders, const std::string& head = "");

// Where the heads of a described chip lie: "chip.yaml" -> "chip.heads.json".
std::string heads_beside(const std::string& description);

struct ChipHeads {
  PredictorHeads heads;
  std::string kind, target;          // of the predictors; target_key
  std::vector<std::string> members;  // PredictorSet::networks of those that they are for
};
Error write_heads(const ChipHeads& heads, const std::string& path);
Expected<ChipHeads> read_heads(const std::string& path);

}  // namespace tw
