// Look-up of target descriptions by name, and the rates of a core that a description does not give
// itself.
#include <llvm/ADT/StringExtras.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "frontend/frontend.h"
#include "frontend/mapped_file.h"
#include "support/most_like.h"

namespace tw {
namespace {

Expected<Target> read_target(const std::string& file) {
  TW_ASSIGN(const std::shared_ptr<const MappedFile> mapped, MappedFile::open(file));
  return parse_target(std::string(mapped->text().substr(0, kMaxDescription + 1)), file);
}

// True if the description's rates hold for the target. A target with features that its cpu's
// description lacks is another chip: LLVM, or the author, named it after the nearest known one.
bool has_rates_of(const Target& description, const Target& target) {
  if (description.arch() != target.arch() || description.vector_bits != target.vector_bits)
    return false;
  return std::ranges::count(description.core.cpus, target.cpu) ||
         (description.name == target.cpu && description.cpu == target.cpu &&
          std::ranges::includes(description.features, target.features));
}

// The rates of the description in config_dirs that is named like the cpu or lists it. Files that
// are no descriptions are skipped here; 'tilewright targets' reports them.
CoreRates rates_of_cpu(const Target& target, const std::vector<std::string>& config_dirs) {
  std::vector<std::string> names = list_targets(config_dirs);
  if (!target_file(target.cpu, config_dirs).empty()) names = {target.cpu};
  for (const std::string& name : names) {
    if (name == kHostTarget) continue;
    Expected<Target> other = read_target(target_file(name, config_dirs));
    if (!other) {
      llvm::consumeError(other.takeError());
      continue;
    }
    if (has_rates_of(*other, target)) return other->core;
  }
  return {};
}

// The reason why `wider` cannot stand beside the most general description of a library; "": it can.
std::string misfit(const Target& general, const Target& wider, const std::string& triple) {
  if (!wider.isa.empty()) return "has an isa of its own";
  if (!wider.devices.empty()) return "has devices";
  if (wider.triple != triple) return "is for " + wider.triple + ", not for " + triple;
  for (const std::string& feature : general.features)
    if (!wider.has(feature))
      return "lacks the feature '" + feature + "' of '" + general.name +
             "', which stands first and so must run wherever the others do";
  return "";
}

Expected<Target> with_isa(const Target& listed, const std::string& file,
                          const std::vector<std::string>& config_dirs) {
  std::vector<Target> all;
  std::vector<Diag> problems;
  for (const std::string& name : listed.isa) {
    TW_ASSIGN(Target one, load_target(name, config_dirs));
    all.push_back(std::move(one));
    const std::string why = misfit(all.front(), all.back(), listed.triple);
    if (!why.empty())
      problems.push_back(
          {DiagCode::invalid_argument, "isa: '" + name + "' " + why, {file, 0, 0}, {}});
  }
  if (!problems.empty()) return make_error(std::move(problems));
  Target target = all.front();
  target.name = listed.name;
  target.isa = listed.isa;
  target.wider.assign(all.begin() + 1, all.end());
  return target;
}

}  // namespace

std::vector<std::string> list_targets(const std::vector<std::string>& config_dirs) {
  std::set<std::string> names;
  for (const std::string& folder : config_dirs) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
      if (entry.path().extension() == ".yaml") names.insert(entry.path().stem().string());
  }
  std::vector<std::string> out = {kHostTarget};
  out.insert(out.end(), names.begin(), names.end());
  return out;
}

std::string target_file(const std::string& name_or_path,
                        const std::vector<std::string>& config_dirs) {
  if (name_or_path == kHostTarget) return "";
  if (name_or_path.find('/') != std::string::npos ||
      std::filesystem::path(name_or_path).extension() == ".yaml")
    return name_or_path;
  for (const std::string& dir : config_dirs) {
    const std::string candidate = dir + "/" + name_or_path + ".yaml";
    std::error_code ignored;
    if (std::filesystem::is_regular_file(candidate, ignored)) return candidate;
  }
  return "";
}

Target with_all_rates(Target target, const std::vector<std::string>& config_dirs) {
  target.core = with_defaults(std::move(target.core), rates_of_cpu(target, config_dirs));
  target.core = core_rates(target);
  return target;
}

Expected<Target> load_target(const std::string& name_or_path,
                             const std::vector<std::string>& config_dirs) {
  if (name_or_path == kHostTarget) return with_all_rates(host_target(), config_dirs);
  const std::string file = target_file(name_or_path, config_dirs);
  if (file.empty()) {
    const std::vector<std::string> all = list_targets(config_dirs);
    std::vector<std::string> notes{did_you_mean(name_or_path, all)};
    if (notes.front().empty())
      notes.front() = "the nearest: " + llvm::join(most_like(name_or_path, all), ", ");
    notes.push_back("'tilewright targets' lists all " + std::to_string(all.size()) +
                    "; else the path of a YAML file");
    return make_error({DiagCode::invalid_argument,
                       "unknown target '" + name_or_path + "'",
                       {},
                       std::move(notes)});
  }
  TW_ASSIGN(Target target, read_target(file));
  if (!target.isa.empty()) return with_isa(target, file, config_dirs);
  return with_all_rates(std::move(target), config_dirs);
}

}  // namespace tw
