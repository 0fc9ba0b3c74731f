#include "autotune/lock.h"

#include <algorithm>
#include <tuple>

#include "autotune/record.h"
#include "support/json.h"

namespace tw {
namespace {

constexpr int kVersion = 2;

std::map<std::string, std::pair<int64_t, int64_t>> ranges_of(const SymbolLimitsOf& limits) {
  std::map<std::string, std::pair<int64_t, int64_t>> ranges;
  for (const auto& [name, range] : limits) ranges[name] = {range.least, range.most};
  return ranges;
}

auto place_of(const LockSection& s) {
  return std::tuple(s.model, s.dims, ranges_of(s.limits), s.target_hash, s.threads, s.precision);
}

Json to_json(const Pin& pin) {
  Json::Array lines;
  for (size_t at = 0; at < pin.schedule.size();) {
    const size_t end = std::min(pin.schedule.find('\n', at), pin.schedule.size());
    lines.push_back(pin.schedule.substr(at, end - at));
    at = end + 1;
  }
  Json::Object out{{"task", pin.task},          {"name", pin.name},
                   {"target", pin.target},      {"algorithm", pin.algorithm},
                   {"kernel", pin.kernel_hash}, {"source", source_of(pin)}};
  if (pin.tuned) {
    out.push_back({"seconds", pin.seconds});
    out.push_back({"date", date_text(pin.time)});
    if (!pin.tool.empty()) out.push_back({"tool", pin.tool});
  }
  if (!pin.left_out.empty()) out.push_back({"left_out", pin.left_out});
  if (pin.trials > 0) out.push_back({"trials", pin.trials});
  out.push_back({"schedule", lines});
  return out;
}

Pin pin_of(const Json& json) {
  Pin pin;
  pin.task = json["task"].text_or_empty();
  pin.target = json["target"].text_or_empty();
  pin.kernel_hash = json["kernel"].text_or_empty();
  pin.name = json["name"].text_or_empty();
  pin.algorithm = json["algorithm"].text_or_empty();
  pin.tuned = json["source"].text_or_empty() == "tuned";
  pin.transferred = json["source"].text_or_empty() == "transferred";
  pin.predicted = json["source"].text_or_empty() == "predicted";
  pin.tool = json["tool"].text_or_empty();
  pin.left_out = json["left_out"].text_or_empty();
  pin.trials = static_cast<int>(std::clamp<int64_t>(json["trials"].integer_or(0), 0, INT32_MAX));
  pin.seconds = json["seconds"].number_or(0);
  pin.time = date_from_text(json["date"].text_or_empty()).value_or(0);
  for (const Json& line : json["schedule"].items()) pin.schedule += line.text_or_empty() + "\n";
  return pin;
}

Json to_json(const LockSection& s) {
  Json::Object dims, limits, layouts, algorithms;
  for (const auto& [name, value] : s.dims) dims.push_back({name, value});
  for (const auto& [name, range] : s.limits)
    limits.push_back({name, Json::Array{range.least, range.most}});
  for (const auto& [name, algorithm] : s.algorithms)
    algorithms.push_back({name, algorithm_name(algorithm)});
  Json::Array kernels;
  for (const Pin& pin : s.pins) kernels.push_back(to_json(pin));
  Json::Object out{{"model", s.model}, {"dims", dims}};
  if (!limits.empty()) out.push_back({"limits", limits});
  out.insert(out.end(),
             {{"target", s.target}, {"target_hash", s.target_hash}, {"threads", s.threads}});
  if (s.precision != Precision::fp32) out.push_back({"precision", precision_name(s.precision)});
  if (s.layouts) {
    for (const auto& [name, block] : *s.layouts) layouts.push_back({name, block});
    out.push_back({"layouts", layouts});
  }
  if (!algorithms.empty()) out.push_back({"algorithms", algorithms});
  if (!s.exact.empty()) out.push_back({"exact", json_array(s.exact)});
  out.push_back({"kernels", kernels});
  return out;
}

Expected<LockSection> section_of(const Json& json, const std::string& file) {
  LockSection s;
  s.model = json["model"].text_or_empty();
  if (const Json::Object* dims = json["dims"].object())
    for (const Json::Member& d : *dims) s.dims[d.key] = d.value.integer_or(0);
  if (const Json::Object* limits = json["limits"].object())
    for (const Json::Member& l : *limits) {
      if (l.value.items().size() != 2)
        return make_error(DiagCode::parse, "'{0}': the limits of '{1}' are not two numbers", file,
                          l.key);
      s.limits[l.key] = {l.value.items()[0].integer_or(0), l.value.items()[1].integer_or(0)};
    }
  s.target = json["target"].text_or_empty();
  s.target_hash = json["target_hash"].text_or_empty();
  s.threads = static_cast<int>(std::clamp<int64_t>(json["threads"].integer_or(0), 0, 65536));
  if (const std::string name = json["precision"].text_or_empty(); !name.empty()) {
    const std::optional<Precision> precision = precision_from_name(name);
    if (!precision || *precision == Precision::automatic)
      return make_error(DiagCode::parse, "'{0}': '{1}' is no precision that kernels have", file,
                        name);
    s.precision = *precision;
  }
  if (const Json::Object* layouts = json["layouts"].object()) {
    s.layouts.emplace();
    for (const Json::Member& l : *layouts) (*s.layouts)[l.key] = l.value.integer_or(0);
  }
  if (const Json::Object* algorithms = json["algorithms"].object())
    for (const Json::Member& a : *algorithms) {
      const std::optional<Algorithm> algorithm = algorithm_from_name(a.value.text_or_empty());
      if (!algorithm)
        return make_error(DiagCode::parse,
                          "'{0}': there is no algorithm '{1}', which it has for '{2}'", file,
                          a.value.text_or_empty(), a.key);
      s.algorithms[a.key] = *algorithm;
    }
  for (const Json& layer : json["exact"].items()) s.exact.insert(layer.text_or_empty());
  for (const Json& kernel : json["kernels"].items()) s.pins.push_back(pin_of(kernel));
  return s;
}

}  // namespace

bool same_place(const LockSection& a, const LockSection& b) { return place_of(a) == place_of(b); }

std::string describe(const LockSection& s) {
  std::string dims;
  for (const auto& [name, value] : s.dims)
    dims += (dims.empty() ? " (" : ", ") + name + "=" + std::to_string(value);
  for (const auto& [name, range] : s.limits)
    dims += (dims.empty() ? " (" : ", ") + name + "=" + std::to_string(range.least) + ".." +
            std::to_string(range.most);
  return s.model + dims + (dims.empty() ? "" : ")") + " for " + s.target +
         (s.precision == Precision::fp32 ? "" : std::string(" in ") + precision_name(s.precision)) +
         ", " + std::to_string(s.threads) + (s.threads == 1 ? " thread" : " threads");
}

const LockSection* Lock::find(const LockSection& place) const {
  const auto found = std::ranges::find_if(
      sections, [&](const LockSection& s) { return same_place(s, place); });
  return found == sections.end() ? nullptr : &*found;
}

void Lock::set_section(LockSection section) {
  std::erase_if(sections, [&](const LockSection& s) { return same_place(s, section); });
  sections.push_back(std::move(section));
}

std::string print(const Lock& lock) {
  std::vector<LockSection> sections = lock.sections;
  std::ranges::stable_sort(sections, [](const LockSection& a, const LockSection& b) {
    return place_of(a) < place_of(b);
  });
  Json::Array models;
  for (LockSection& s : sections) {
    std::ranges::stable_sort(s.pins);
    models.push_back(to_json(s));
  }
  return dump(Json::Object{
             {"tilewright_lock", kVersion}, {"language", kLanguageVersion}, {"models", models}}) +
         "\n";
}

Expected<Lock> parse_lock(std::string_view text, const std::string& file) {
  TW_ASSIGN(const Json json, parse_json(text, file));
  const int64_t version = json["tilewright_lock"].integer_or(0);
  if (version <= 0) return make_error(DiagCode::parse, "'{0}' is no lock of tilewright", file);
  Lock lock;
  lock.outdated = version != kVersion || json["language"].integer_or(0) != kLanguageVersion;
  if (lock.outdated) return lock;
  for (const Json& model : json["models"].items()) {
    TW_ASSIGN(LockSection section, section_of(model, file));
    lock.sections.push_back(std::move(section));
  }
  return lock;
}

}  // namespace tw
