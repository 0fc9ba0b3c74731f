#include "driver/tune/predictor_files.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "driver/compile/manifest.h"
#include "packager/loaded_model.h"
#include "packager/output_file.h"
#include "support/hash.h"
#include "support/json.h"
#include "support/regular_file.h"

namespace tw {
namespace {
namespace fs = std::filesystem;

std::string kind_of(const fs::path& file) {
  const std::string stem = file.stem().string();
  const size_t dash = stem.rfind('-');
  return file.extension() == ".so" && dash != std::string::npos ? stem.substr(0, dash) : "";
}

// The kind's files in the first folder that has any, sorted by name
std::vector<std::string> files_of(const std::string& kind,
                                  const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    std::vector<std::string> files;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder, none))
      if (kind_of(entry.path()) == kind) files.push_back(entry.path().string());
    std::ranges::sort(files);
    if (!files.empty()) return files;
  }
  return {};
}

Error no_such_kind(const std::string& kind, const std::vector<std::string>& folders) {
  std::string known;
  for (const std::string& k : predictor_kinds(folders)) known += (known.empty() ? "" : ", ") + k;
  return make_error(DiagCode::invalid_argument, "there is no predictor '{0}' here{1}", kind,
                    known.empty() ? "" : ": one of " + known);
}

Expected<std::unique_ptr<Predictor>> load_one(const std::string& path) {
  TW_ASSIGN(LoadedModel opened, LoadedModel::open(path));
  const auto library = std::make_shared<LoadedModel>(std::move(opened));
  const std::shared_ptr<const tw_api> api(library, &library->api());
  TW_ASSIGN(Manifest manifest, parse_manifest(api->manifest, path));
  manifest.metadata["network"] = manifest.model_sha256;
  return Predictor::create(api, std::move(manifest.metadata), path);
}

std::string sum_of(Json::Object content) { return short_hash(dump(Json(std::move(content)), -1)); }

Json::Object content_of(const ChipHeads& chip) {
  Json::Array weights;
  for (const std::vector<double>& row : chip.heads.weights) weights.push_back(json_array(row));
  return Json::Object{{"format", 1},
                      {"kind", chip.kind},
                      {"target", chip.target},
                      {"members", json_array(chip.members)},
                      {"own_shares", json_array(chip.heads.own_shares)},
                      {"spread", chip.heads.spread},
                      {"weights", weights}};
}

}  // namespace

std::vector<std::string> predictor_kinds(const std::vector<std::string>& folders) {
  std::set<std::string> kinds;
  for (const std::string& folder : folders) {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder, none))
      if (const std::string kind = kind_of(entry.path()); !kind.empty()) kinds.insert(kind);
  }
  return {kinds.begin(), kinds.end()};
}

Expected<std::shared_ptr<const PredictorSet>> load_predictors(
    const std::string& kind, const std::vector<std::string>& folders, const std::string& head) {
  const std::vector<std::string> files = files_of(kind, folders);
  if (files.empty()) return no_such_kind(kind, folders);
  std::vector<std::unique_ptr<Predictor>> members;
  std::vector<std::string> networks;
  for (const std::string& file : files) {
    TW_ASSIGN(std::unique_ptr<Predictor> member, load_one(file));
    if (member->kind() != kind)
      return make_error(DiagCode::invalid_argument, "a predictor of '{0}' says that it is a '{1}'",
                        kind, member->kind());
    networks.push_back(member->network());
    members.push_back(std::move(member));
  }
  std::optional<PredictorHeads> heads;
  if (!head.empty()) {
    TW_ASSIGN(ChipHeads chip, read_heads(head));
    if (chip.kind != kind || chip.members != networks)
      return make_error(DiagCode::invalid_argument,
                        "the heads in '{0}' are for other predictors than those that are here; "
                        "'tilewright adapt' fits them anew",
                        head);
    heads = std::move(chip.heads);
  }
  return std::make_shared<const PredictorSet>(std::move(members), std::move(heads));
}

std::string heads_beside(const std::string& description) {
  return fs::path(description).replace_extension("heads.json").string();
}

Error write_heads(const ChipHeads& chip, const std::string& path) {
  Json::Object content = content_of(chip);
  const std::string sum = sum_of(content);
  content.push_back({"checksum", sum});
  return write_file(path, dump(Json(std::move(content)), 1) + "\n");
}

Expected<ChipHeads> read_heads(const std::string& path) {
  TW_ASSIGN(const auto bytes, regular_file(path));
  TW_ASSIGN(const Json json, parse_json(bytes->getBuffer().str(), path));
  ChipHeads chip;
  chip.kind = json["kind"].text_or_empty();
  chip.target = json["target"].text_or_empty();
  for (const Json& member : json["members"].items()) chip.members.push_back(member.text_or_empty());
  for (const Json& share : json["own_shares"].items())
    chip.heads.own_shares.push_back(share.number_or(1));
  chip.heads.spread = json["spread"].number_or(0);
  for (const Json& row : json["weights"].items()) {
    std::vector<double>& weights = chip.heads.weights.emplace_back();
    for (const Json& weight : row.items()) weights.push_back(weight.number_or(0));
  }
  if (json["format"].integer_or(0) != 1 || chip.heads.weights.size() != chip.members.size() ||
      chip.heads.own_shares.size() != chip.members.size() ||
      json["checksum"].text_or_empty() != sum_of(content_of(chip)))
    return make_error(DiagCode::parse, "'{0}' is damaged, or no heads of predictors", path);
  return chip;
}

}  // namespace tw
