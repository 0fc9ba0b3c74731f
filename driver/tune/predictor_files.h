// Predictors are files: libraries that this program compiled, named KIND-NUMBER.so, and heads that
// fit them to a chip (tilewright adapt).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "autotune/models/predictor.h"

namespace tw {

inline constexpr const char* kBestPredictor = "ranker";

// The kinds that are in the folders, sorted.
std::vector<std::string> predictor_kinds(const std::vector<std::string>& folders);

// Loads all members of the kind from the first folder that has any. head: the file of a chip's own
// heads; "": none. Errors: no such kind, a file that is damaged or no predictor of this version,
// heads of other predictors.
Expected<std::shared_ptr<const PredictorSet>> load_predictors(
    const std::string& kind, const std::vector<std::string>& folders, const std::string& head = "");

// The path of a described chip's heads: "chip.yaml" -> "chip.heads.json"
std::string heads_beside(const std::string& description);

struct ChipHeads {
  PredictorHeads heads;
  std::string kind, target;          // kind of the predictors; target_key
  std::vector<std::string> members;  // PredictorSet::networks of the predictors that they fit
};
Error write_heads(const ChipHeads& heads, const std::string& path);
Expected<ChipHeads> read_heads(const std::string& path);

}  // namespace tw
