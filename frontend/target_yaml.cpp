// Reader of target descriptions in YAML. It is strict: an unknown, repeated or badly typed key is
// an error with line and column. docs/reference/targets.md explains every key.
#include <llvm/ADT/StringExtras.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <functional>
#include <set>

#include "frontend/budget.h"
#include "frontend/frontend.h"
#include "frontend/intrinsic_library.h"
#include "frontend/target_features.h"
#include "ir/freestanding.h"
#include "ir/kernel/kernel.h"
#include "ir/schedule/product_form.h"
#include "support/most_like.h"

namespace tw {
namespace {

constexpr int kMaxCores = 4096;
constexpr int kMicroRegisters = 8;  // 32 single registers, four by four in 128 bits
constexpr std::string_view kTriples[] = {"x86_64-linux-gnu",
                                         "aarch64-linux-gnu",
                                         "aarch64-linux-android",
                                         "armv7-linux-gnueabihf",
                                         "armv7-linux-androideabi",
                                         "riscv64-linux-gnu",
                                         "x86_64-none-elf",
                                         "aarch64-none-elf",
                                         "armv7-none-eabihf",
                                         "riscv64-none-elf",
                                         "thumbv7em-none-eabihf",
                                         "thumbv8m.main-none-eabihf",
                                         "thumbv8.1m.main-none-eabihf"};

Location location(const std::string& file, const YAML::Mark& mark) {
  return mark.is_null() ? Location{file, 0, 0} : Location{file, mark.line + 1, mark.column + 1};
}

constexpr size_t kMostIsa = 8;  // descriptions in a library for several processors

std::string number_text(double value) {
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end};
}

// "2.2GHz" -> 2.2e9; nullopt if the text does not begin with a number, or the rest is no unit.
std::optional<double> without_unit(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  const llvm::StringRef unit =
      llvm::StringRef(text).drop_front(static_cast<size_t>(end - text.data())).trim();
  for (const auto& [prefix, factor] :
       {std::pair("k", 1e3), std::pair("M", 1e6), std::pair("G", 1e9), std::pair("T", 1e12),
        std::pair("", 1.0)})
    for (const char* base : {"Hz", "B/s", "FLOPS", "FLOP/s", "B", ""})
      if (!unit.empty() && unit.equals_insensitive(std::string(prefix) + base))
        return value * factor;
  return std::nullopt;
}

bool adds_pairs(const Intrinsic& intrinsic) {
  const std::optional<ProductForm> form = product_form(intrinsic);
  return form && form->left_type == DType::bf16 && form->right_type == DType::bf16 &&
         form->sum_type == DType::f32 && !form->depth.empty() && form->depth.back().extent % 2 == 0;
}

bool takes(const EmitCalls& emit, const std::string& parameter) {
  return std::ranges::any_of(emit.calls, [&](const EmitCalls::Call& call) {
    return std::ranges::any_of(call.operands, [&](const EmitCalls::Operand& operand) {
      return operand.name == parameter;
    });
  });
}

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  Target read(const YAML::Node& root);
  void read_library(const YAML::Node& root, Target& t) {
    read_map(root, "the instructions", {{"intrinsics", call<&Reader::read_intrinsics>}}, t);
  }
  std::vector<Diag> problems;

 private:
  struct Key {
    const char* name;
    std::function<void(Reader&, const YAML::Node&, Target&)> read;
  };
  template <void (Reader::*member)(const YAML::Node&, Target&)>
  static void call(Reader& reader, const YAML::Node& node, Target& target) {
    (reader.*member)(node, target);
  }
  void read_map(const YAML::Node& node, const char* what, const std::vector<Key>& keys,
                Target& target);
  void problem(const YAML::Node& node, std::string text, std::vector<std::string> notes = {}) {
    problems.push_back(
        {DiagCode::parse, std::move(text), location(file_, node.Mark()), std::move(notes)});
  }
  std::string scalar(const YAML::Node& node, const char* key);
  int64_t integer(const YAML::Node& node, const char* key, int64_t least, int64_t most);
  int64_t bytes(const YAML::Node& node, const char* key);

  void read_name(const YAML::Node& node, Target& t) { t.name = scalar(node, "name"); }
  void read_triple(const YAML::Node& node, Target& t);
  void read_cpu(const YAML::Node& node, Target& t);
  void read_features(const YAML::Node& node, Target& t);
  void read_cores(const YAML::Node& node, Target& t) {
    t.cores = static_cast<int>(integer(node, "cores", 1, kMaxCores));
  }
  void read_caches(const YAML::Node& node, Target& t);
  void read_l1(const YAML::Node& node, Target& t) { t.l1_bytes = bytes(node, "l1"); }
  void read_l2(const YAML::Node& node, Target& t) { t.l2_bytes = bytes(node, "l2"); }
  void read_l3(const YAML::Node& node, Target& t) { t.l3_bytes = bytes(node, "l3"); }
  void read_vector_bits(const YAML::Node& node, Target& t);
  void read_vector_registers(const YAML::Node& node, Target& t);
  void read_fast_math(const YAML::Node& node, Target& t);
  void read_accuracy(const YAML::Node& node, Target& t);
  void read_precision(const YAML::Node& node, Target& t);
  void read_schedules(const YAML::Node& node, Target& t);
  void read_axes(const YAML::Node& node, Target& t);
  void read_scopes(const YAML::Node& node, Target& t);
  void read_intrinsics(const YAML::Node& node, Target& t) { read_instructions(node, t, 5); }
  // Features and rates of instructions belong to the device itself
  void read_device_intrinsics(const YAML::Node& node, Target& t) { read_instructions(node, t, 3); }
  void read_instructions(const YAML::Node& node, Target& t, size_t needed);
  void read_without_intrinsics(const YAML::Node& node, Target& t);
  void check_intrinsics(Target& t);
  EmitCalls emit(const YAML::Node& node, const char* key);
  PairRule pair_rule(const YAML::Node& node);
  std::vector<std::string> words(const YAML::Node& node, const char* what);
  void read_devices(const YAML::Node& node, Target& t);
  // A budget belongs to models, not to the chip: load_budget returns it
  void check_budget(const YAML::Node& node, Target&) { read_budget(node, file_, problems); }
  void read_device_features(const YAML::Node& node, Target& t);
  void read_isa(const YAML::Node& node, Target& t);
  void read_driver(const YAML::Node& node, Target& t) { t.driver = scalar(node, "driver"); }
  void read_max_group(const YAML::Node& node, Target& t) {
    t.max_group = integer(node, "max_group", 1, 1 << 16);
  }
  void read_local_bytes(const YAML::Node& node, Target& t) {
    t.local_bytes = bytes(node, "local_bytes");
  }
  void read_rates(const YAML::Node& node, Target& t);
  template <class RateKeys, class Read>
  static std::vector<Key> rate_keys(const RateKeys& rates, const Read& read);
  void read_multiprocessors(const YAML::Node& node, Target& t);
  void read_core_rates(const YAML::Node& node, Target& t);
  void read_take_all(const YAML::Node& node, Target& t) { t.take_all = boolean(node, "take_all"); }
  void read_virtual_threads(const YAML::Node& node, Target& t) {
    t.virtual_threads = static_cast<int>(integer(node, "virtual_threads", 1, 64));
  }
  void read_address(const YAML::Node& node, Target& t) { t.address = scalar(node, "address"); }
  void read_parameters(const YAML::Node& node, Target& t);
  double positive(const YAML::Node& node, const char* key);
  bool boolean(const YAML::Node& node, const char* key);
  void read_list(const YAML::Node& node, const char* what, const std::vector<const char*>& keys,
                 size_t needed, const std::function<void(const std::vector<YAML::Node>&)>& read);

  std::string file_;
  std::set<std::string> seen_;  // top-level keys
  // Checked once the architecture is known
  std::vector<YAML::Node> cpu_, feature_nodes_;
  YAML::Node intrinsics_, without_;
};

void Reader::read_map(const YAML::Node& node, const char* what, const std::vector<Key>& keys,
                      Target& target) {
  std::vector<std::string> names;
  for (const Key& key : keys) names.emplace_back(key.name);
  const std::string accepted = llvm::join(names, ", ");
  if (!node.IsMap())
    return problem(node, std::string(what) + " must be a map", {"accepted keys: " + accepted});
  std::set<std::string> seen;
  for (const auto& entry : node) {
    const std::string name = entry.first.IsScalar() ? entry.first.Scalar() : "";
    const auto key = std::find_if(keys.begin(), keys.end(),
                                  [&](const Key& k) { return name == k.name; });
    std::vector<std::string> notes{"accepted keys: " + accepted};
    if (const std::string near = did_you_mean(name, names); !near.empty())
      notes.insert(notes.begin(), near);
    if (key == keys.end()) problem(entry.first, "unknown key '" + name + "' in " + what, notes);
    else if (!seen.insert(name).second) problem(entry.first, "key '" + name + "' is given twice");
    else key->read(*this, entry.second, target);
  }
  if (std::string_view(what) == "the target") seen_ = std::move(seen);
}

std::string Reader::scalar(const YAML::Node& node, const char* key) {
  if (node.IsScalar() && !node.Scalar().empty()) return node.Scalar();
  problem(node, std::string(key) + " must be a word");
  return "";
}

int64_t Reader::integer(const YAML::Node& node, const char* key, int64_t least, int64_t most) {
  const std::string text = node.IsScalar() ? node.Scalar() : "";
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value < least ||
      value > most) {
    problem(node, llvm::formatv("{0} must be an integer from {1} to {2}", key, least, most).str());
    return least;
  }
  return value;
}

int64_t Reader::bytes(const YAML::Node& node, const char* key) {
  const std::optional<int64_t> size = size_from_text(node.IsScalar() ? node.Scalar() : "");
  if (!size)
    problem(node, llvm::formatv("{0} must be a size such as 32768, 32KiB or 1MiB", key).str());
  return size.value_or(0);
}

void Reader::read_triple(const YAML::Node& node, Target& t) {
  t.triple = scalar(node, "triple");
  if (t.triple.empty() || std::ranges::count(kTriples, t.triple)) return;
  std::string accepted;
  for (const std::string_view triple : kTriples)
    accepted += (accepted.empty() ? "accepted: " : ", ") + std::string(triple);
  problem(node, "no code can be made for triple '" + t.triple + "'", {accepted});
  t.triple.clear();
}

void Reader::read_cpu(const YAML::Node& node, Target& t) {
  t.cpu = scalar(node, "cpu");
  cpu_.push_back(node);
}

void Reader::read_features(const YAML::Node& node, Target& t) {
  if (!node.IsSequence()) return problem(node, "features must be a list, such as [avx2, fma]");
  for (const auto& item : node) {
    t.features.push_back(scalar(item, "a feature"));
    feature_nodes_.push_back(item);
  }
}

void Reader::read_caches(const YAML::Node& node, Target& t) {
  read_map(node, "caches",
           {{"l1", call<&Reader::read_l1>},
            {"l2", call<&Reader::read_l2>},
            {"l3", call<&Reader::read_l3>}},
           t);
}

void Reader::read_vector_bits(const YAML::Node& node, Target& t) {
  t.vector_bits = static_cast<int>(integer(node, "vector_bits", 64, 2048));
  if ((t.vector_bits & (t.vector_bits - 1)) != 0)
    problem(node, "vector_bits must be a power of two");
}

void Reader::read_vector_registers(const YAML::Node& node, Target& t) {
  t.vector_registers = static_cast<int>(integer(node, "vector_registers", 8, 128));
}

void Reader::read_fast_math(const YAML::Node& node, Target& t) {
  t.fast_math = boolean(node, "fast_math");
}

bool Reader::boolean(const YAML::Node& node, const char* key) {
  const std::string text = node.IsScalar() ? node.Scalar() : "";
  if (text != "true" && text != "false") problem(node, std::string(key) + " must be true or false");
  return text == "true";
}

double Reader::positive(const YAML::Node& node, const char* key) {
  double value = -1;
  try {
    value = node.as<double>();
  } catch (const YAML::Exception&) {}
  if (value > 0 && std::isfinite(value)) return value;
  const std::string text = node.IsScalar() ? node.Scalar() : "";
  const std::optional<double> plain = without_unit(text);
  problem(node, std::string(key) + " must be a number above 0" + (plain ? ", without a unit" : ""),
          plain
              ? std::vector{"did you mean '" + std::string(key) + ": " + number_text(*plain) + "'?"}
              : std::vector<std::string>());
  return value;
}

void Reader::read_accuracy(const YAML::Node& node, Target& t) {
  t.accuracy = positive(node, "accuracy");
  if (t.accuracy > 1) problem(node, "accuracy must be a number above 0 and up to 1");
}

void Reader::read_precision(const YAML::Node& node, Target& t) {
  const std::optional<Precision> found = precision_from_name(node.IsScalar() ? node.Scalar() : "");
  if (found) t.precision = *found;
  else problem(node, "precision must be one of " + precision_names());
}

void Reader::read_schedules(const YAML::Node& node, Target& t) {
  const std::string word = node.IsScalar() ? node.Scalar() : "";
  t.predicted_schedules = word == "predicted";
  if (word != "predicted" && word != "rules") problem(node, "schedules must be rules or predicted");
}

void Reader::read_rates(const YAML::Node& node, Target& t) {
  read_map(
      node, "rates",
      {{"flops",
        [](Reader& r, const YAML::Node& n, Target& d) { d.rates.flops = r.positive(n, "flops"); }},
       {"bytes",
        [](Reader& r, const YAML::Node& n, Target& d) { d.rates.bytes = r.positive(n, "bytes"); }},
       {"copy_bytes", [](Reader& r, const YAML::Node& n,
                         Target& d) { d.rates.copy_bytes = r.positive(n, "copy_bytes"); }},
       {"launch", [](Reader& r, const YAML::Node& n,
                     Target& d) { d.rates.launch = r.positive(n, "launch"); }},
       {"copy",
        [](Reader& r, const YAML::Node& n, Target& d) { d.rates.copy = r.positive(n, "copy"); }}},
      t);
}

// Keys of rates. Those of a group stand in a map of their own, at the group's place. `read` reads
// the value of one.
template <class RateKeys, class Read>
std::vector<Reader::Key> Reader::rate_keys(const RateKeys& rates, const Read& read) {
  const auto one = [&read](const auto& rate) {
    return Key{rate.name,
               [rate, read](Reader& r, const YAML::Node& n, Target& d) { read(r, n, rate, d); }};
  };
  std::vector<Key> keys;
  for (const auto& rate : rates) {
    const std::string group = rate.group;
    if (group.empty()) keys.push_back(one(rate));
    if (group.empty() || (!keys.empty() && keys.back().name == group)) continue;
    std::vector<Key> members;
    for (const auto& other : rates)
      if (group == other.group) members.push_back(one(other));
    keys.push_back({rate.group, [rate, members](Reader& r, const YAML::Node& n, Target& d) {
                      r.read_map(n, rate.group, members, d);
                    }});
  }
  return keys;
}

void Reader::read_multiprocessors(const YAML::Node& node, Target& t) {
  constexpr int64_t kMost = int64_t{1} << 40;
  read_map(node, "multiprocessors",
           rate_keys(kMultiprocessorKeys,
                     [](Reader& r, const YAML::Node& n, const MultiprocessorKey& rate, Target& d) {
                       d.multiprocessors.*rate.rate = r.integer(n, rate.name, 1, kMost);
                     }),
           t);
}

void Reader::read_core_rates(const YAML::Node& node, Target& t) {
  std::vector<Key> keys = rate_keys(
      kCoreRateKeys, [](Reader& r, const YAML::Node& n, const CoreRateKey& rate, Target& d) {
        d.core.*rate.rate = r.positive(n, rate.name);
      });
  keys.push_back({"cpus", [](Reader& r, const YAML::Node& n, Target& d) {
                    if (!n.IsSequence()) return r.problem(n, "cpus must be a list of LLVM's names");
                    for (const auto& item : n) {
                      d.core.cpus.push_back(r.scalar(item, "a cpu"));
                      r.cpu_.push_back(item);
                    }
                  }});
  read_map(node, "rates", keys, t);
}

void Reader::read_device_features(const YAML::Node& node, Target& t) {
  if (!node.IsSequence()) return problem(node, "features must be a list, such as [fp64]");
  for (const auto& item : node) t.features.push_back(scalar(item, "a feature"));
  std::sort(t.features.begin(), t.features.end());
  t.features.erase(std::unique(t.features.begin(), t.features.end()), t.features.end());
}

void Reader::read_devices(const YAML::Node& node, Target& t) {
  if (!node.IsSequence()) return problem(node, "devices must be a list of maps");
  std::set<std::string> names;
  for (const auto& item : node) {
    Target device;
    const size_t before = problems.size();
    read_map(item, "a device",
             {{"name", call<&Reader::read_name>},
              {"driver", call<&Reader::read_driver>},
              {"features", call<&Reader::read_device_features>},
              {"caches", call<&Reader::read_caches>},
              {"vector_bits", call<&Reader::read_vector_bits>},
              {"vector_registers", call<&Reader::read_vector_registers>},
              {"fast_math", call<&Reader::read_fast_math>},
              {"axes", call<&Reader::read_axes>},
              {"scopes", call<&Reader::read_scopes>},
              {"intrinsics", call<&Reader::read_device_intrinsics>},
              {"max_group", call<&Reader::read_max_group>},
              {"local_bytes", call<&Reader::read_local_bytes>},
              {"multiprocessors", call<&Reader::read_multiprocessors>},
              {"rates", call<&Reader::read_rates>},
              {"take_all", call<&Reader::read_take_all>},
              {"virtual_threads", call<&Reader::read_virtual_threads>},
              {"address", call<&Reader::read_address>},
              {"parameters", call<&Reader::read_parameters>}},
             device);
    if (problems.size() == before && (device.name.empty() || device.driver.empty()))
      problem(item, "a device needs the keys name and driver");
    if (!device.driver.empty()) add_shipped_intrinsics(device);
    if (!names.insert(device.name).second) problem(item, "a second device '" + device.name + "'");
    t.devices.push_back(std::move(device));
  }
}

void Reader::read_isa(const YAML::Node& node, Target& t) {
  t.isa = words(node, "isa");
  const std::set<std::string> names(t.isa.begin(), t.isa.end());
  if (names.size() != t.isa.size() || names.size() < 2 || names.size() > kMostIsa)
    problem(node, "isa must be a list of 2 to " + std::to_string(kMostIsa) +
                      " different descriptions, the most general first");
}

void Reader::read_parameters(const YAML::Node& node, Target& t) {
  if (!node.IsMap()) return problem(node, "parameters must be a map of names to integers");
  for (const auto& entry : node) {
    const std::string name = scalar(entry.first, "a parameter's name");
    if (t.parameter(name)) problem(entry.first, "key '" + name + "' is given twice");
    else t.parameters.emplace_back(name, integer(entry.second, name.c_str(), 0, int64_t{1} << 40));
  }
}

// Reads a list of maps. Each has the first `needed` keys and may have the others. `read` gets the
// values in the order of the keys; missing ones are undefined.
void Reader::read_list(const YAML::Node& node, const char* what,
                       const std::vector<const char*>& keys, size_t needed,
                       const std::function<void(const std::vector<YAML::Node>&)>& read) {
  std::string accepted;
  for (const char* key : keys) accepted += (accepted.empty() ? "" : ", ") + std::string(key);
  if (!node.IsSequence())
    return problem(node, std::string(what) + " must be a list of maps", {"keys: " + accepted});
  std::set<std::string> names;
  for (const auto& item : node) {
    if (!item.IsMap()) {
      problem(item, std::string("one of the ") + what + " must be a map with the keys " + accepted);
      continue;
    }
    std::vector<YAML::Node> values(keys.size(), YAML::Node(YAML::NodeType::Undefined));
    bool good = true;
    for (const auto& entry : item) {
      const std::string name = entry.first.IsScalar() ? entry.first.Scalar() : "";
      const auto key = std::find_if(keys.begin(), keys.end(),
                                    [&](const char* k) { return name == k; });
      good &= key != keys.end();
      if (key == keys.end())
        problem(entry.first, "unknown key '" + name + "' in " + what,
                {"accepted keys: " + accepted});
      else values[static_cast<size_t>(key - keys.begin())].reset(entry.second);
    }
    for (size_t i = 0; i < needed && good; ++i)
      if (!values[i].IsDefined())
        problem(item, std::string("one of the ") + what + " lacks the key " + keys[i]),
            good = false;
    if (!good) continue;
    if (!names.insert(scalar(values[0], "name")).second)
      problem(values[0], std::string("a second '") + values[0].Scalar() + "' in " + what);
    read(values);
  }
}

void Reader::read_axes(const YAML::Node& node, Target& t) {
  read_list(node, "axes", {"name", "level", "max"}, 3, [&](const std::vector<YAML::Node>& v) {
    t.axes.push_back(
        {scalar(v[0], "name"), scalar(v[1], "level"), integer(v[2], "max", 0, int64_t{1} << 40)});
  });
}

void Reader::read_scopes(const YAML::Node& node, Target& t) {
  read_list(node, "scopes", {"name", "level", "bytes"}, 1, [&](const std::vector<YAML::Node>& v) {
    t.scopes.push_back({scalar(v[0], "name"), v[1].IsDefined() ? scalar(v[1], "level") : "",
                        v[2].IsDefined() ? bytes(v[2], "bytes") : 0});
  });
}

std::vector<std::string> Reader::words(const YAML::Node& node, const char* what) {
  std::vector<std::string> all;
  if (!node.IsSequence()) problem(node, std::string(what) + " must be a list, such as [a, b]");
  else
    for (const auto& item : node) all.push_back(scalar(item, what));
  return all;
}

// Reads one line or a list of lines.
EmitCalls Reader::emit(const YAML::Node& node, const char* key) {
  std::vector<std::string> lines = node.IsSequence() ? words(node, key)
                                                     : std::vector{scalar(node, key)};
  Expected<EmitCalls> parsed = parse_emit(std::move(lines), location(file_, node.Mark()));
  if (parsed) return std::move(*parsed);
  for (Diag& diag : take_diags(parsed.takeError())) problems.push_back(std::move(diag));
  return {};
}

PairRule Reader::pair_rule(const YAML::Node& node) {
  const std::optional<PairRule> rule = pair_rule_from_name(scalar(node, "pairs"));
  if (!rule) problem(node, "pairs must be in-order, second-first or to-odd");
  return rule.value_or(PairRule::in_order);
}

// Reads a list of instructions. The first `needed` keys must be present.
void Reader::read_instructions(const YAML::Node& node, Target& t, size_t needed) {
  const auto read = [&](const std::vector<YAML::Node>& v) {
    Intrinsic i;
    i.name = scalar(v[0], "name");
    i.semantics = scalar(v[1], "semantics");
    i.emit = emit(v[2], "emit");
    if (v[3].IsDefined()) i.features = words(v[3], "features");
    if (v[4].IsDefined()) i.rate = positive(v[4], "rate");
    if (v[5].IsDefined()) i.scopes = words(v[5], "scopes");
    if (v[6].IsDefined() != v[7].IsDefined())
      problem(v[6].IsDefined() ? v[6] : v[7], std::string("intrinsic '") + i.name +
                                                  "' lacks the key " +
                                                  (v[6].IsDefined() ? "teardown" : "setup"));
    if (v[6].IsDefined()) i.setup = emit(v[6], "setup");
    if (v[7].IsDefined()) i.teardown = emit(v[7], "teardown");
    if (v[8].IsDefined()) i.pairs = pair_rule(v[8]);
    Expected<Kernel> kernel = parse_kernel(i.semantics);
    if (!kernel)
      return problem(v[1], "the semantics are no kernel: " + error_text(kernel.takeError()));
    if (Error error = verify(*kernel))
      return problem(v[1], "the semantics are no legal kernel: " + error_text(std::move(error)));
    std::vector<std::string> parameters;
    for (const Buffer& buffer : kernel->buffers) parameters.push_back(buffer.name);
    if (!i.scopes.empty() && i.scopes.size() != parameters.size())
      problem(v[5], "scopes must be one for each parameter of the semantics");
    // A call does not take a parameter that only gets a result.
    for (const StoreRef& store : stores_of(kernel->body)) {
      const std::string& result = kernel->buffer(store->buffer).name;
      if (store->combiner == Combiner::none && !takes(i.emit, result))
        std::erase(parameters, result);
    }
    const bool copies = i.emit == "async";  // a stage says what is copied
    if (Error error = joinErrors(
            joinErrors(i.emit.empty() || copies ? Error::success() : check_emit(i.emit, parameters),
                       check_emit(i.setup, {})),
            check_emit(i.teardown, {})))
      for (Diag& diag : take_diags(std::move(error))) problems.push_back(std::move(diag));
    i.kernel = std::make_shared<const Kernel>(std::move(*kernel));
    if (i.pairs != PairRule::in_order && !adds_pairs(i))
      problem(v[8], "intrinsic '" + i.name +
                        "' does not add products of bf16 to sums in f32, an even number innermost");
    t.intrinsics.push_back(std::move(i));
  };
  read_list(
      node, "intrinsics",
      {"name", "semantics", "emit", "features", "rate", "scopes", "setup", "teardown", "pairs"},
      needed, read);
  intrinsics_ = node;
}

void Reader::read_without_intrinsics(const YAML::Node& node, Target& t) {
  t.without_intrinsics = words(node, "without_intrinsics");
  without_ = node;
}

// Checks the description's own instructions against the target's features, and adds the shipped
// ones.
void Reader::check_intrinsics(Target& t) {
  for (const Intrinsic& i : t.intrinsics)
    for (const std::string& feature : i.features)
      if (!t.has(feature))
        problem(intrinsics_, "intrinsic '" + i.name + "' needs the feature '" + feature +
                                 "', which the target has not");
  for (const std::string& name : t.without_intrinsics)
    if (!is_shipped(t.arch(), name))
      problem(without_, "no instruction '" + name + "' comes with " + arch_name(t.arch()));
  add_shipped_intrinsics(t);
}

Target Reader::read(const YAML::Node& root) {
  Target t;
  read_map(root, "the target",
           {{"name", call<&Reader::read_name>},
            {"triple", call<&Reader::read_triple>},
            {"cpu", call<&Reader::read_cpu>},
            {"features", call<&Reader::read_features>},
            {"cores", call<&Reader::read_cores>},
            {"caches", call<&Reader::read_caches>},
            {"vector_bits", call<&Reader::read_vector_bits>},
            {"vector_registers", call<&Reader::read_vector_registers>},
            {"fast_math", call<&Reader::read_fast_math>},
            {"accuracy", call<&Reader::read_accuracy>},
            {"precision", call<&Reader::read_precision>},
            {"schedules", call<&Reader::read_schedules>},
            {"rates", call<&Reader::read_core_rates>},
            {"axes", call<&Reader::read_axes>},
            {"scopes", call<&Reader::read_scopes>},
            {"intrinsics", call<&Reader::read_intrinsics>},
            {"without_intrinsics", call<&Reader::read_without_intrinsics>},
            {"devices", call<&Reader::read_devices>},
            {"isa", call<&Reader::read_isa>},
            {"budget", call<&Reader::check_budget>}},
           t);
  if (problems.empty() && !seen_.count("triple"))
    problem(root, "key 'triple' is missing", {"for example: triple: x86_64-linux-gnu"});
  for (const std::string& key : seen_)
    if (!t.isa.empty() && key != "name" && key != "triple" && key != "isa")
      problem(root, "isa and the key '" + key + "' in one description",
              {"beside isa there are name and triple; the listed descriptions say the rest"});
  if (!problems.empty()) return t;
  const Arch arch = t.arch();
  if (t.cpu.empty()) t.cpu = "generic";
  for (const YAML::Node& node : cpu_)
    if (const std::string cpu = node.Scalar(); !known_cpu(arch, cpu))
      problem(node, "unknown cpu '" + cpu + "' for " + arch_name(arch),
              {"LLVM's names for it that are most like this: " +
               llvm::join(like_cpu(arch, cpu), ", ")});
  for (size_t i = 0; i < t.features.size(); ++i)
    if (!known_feature(arch, t.features[i]))
      problem(feature_nodes_[i], "unknown feature '" + t.features[i] + "' for " + arch_name(arch),
              {"LLVM's names for it that are most like this, without '+': " +
               llvm::join(like_feature(arch, t.features[i]), ", ")});
  // A microcontroller's features follow from its cpu
  if (seen_.count("features")) t.features = normal_features(arch, t.features);
  else if (!is_microcontroller(t.triple)) t.features = cpu_features(arch, t.cpu);
  if (!seen_.count("vector_bits")) t.vector_bits = default_vector_bits(arch, t.features);
  if (!seen_.count("vector_registers"))
    t.vector_registers = is_microcontroller(t.triple) ? kMicroRegisters
                                                      : default_vector_registers(arch, t.features);
  check_intrinsics(t);
  for (Target& device : t.devices) {
    device.triple = t.triple;
    device.accuracy = t.accuracy;
    device.precision = t.precision;
  }
  return t;
}

std::string file_stem(const std::string& path) {
  return std::filesystem::path(path).stem().string();
}

}  // namespace

Expected<Target> parse_target(const std::string& yaml, const std::string& file) {
  if (yaml.size() > kMaxDescription)
    return make_error(
        {DiagCode::limit, "a target description has at most 64 KiB", {file, 0, 0}, {}});
  Reader reader(file);
  Target target;
  try {
    target = reader.read(YAML::Load(yaml));
  } catch (const YAML::Exception& e) {
    return make_error({DiagCode::parse, e.msg, location(file, e.mark), {}});
  } catch (const std::exception& e) {
    return make_error({DiagCode::parse, e.what(), {file, 0, 0}, {}});
  }
  TW_TRY(make_error(std::move(reader.problems)));
  if (target.name.empty()) target.name = file_stem(file);
  return target;
}

Expected<std::vector<Intrinsic>> parse_intrinsics(const std::string& yaml,
                                                  const std::string& file) {
  Reader reader(file);
  Target target;
  try {
    reader.read_library(YAML::Load(yaml), target);
  } catch (const YAML::Exception& e) {
    return make_error({DiagCode::parse, e.msg, location(file, e.mark), {}});
  }
  TW_TRY(make_error(std::move(reader.problems)));
  return std::move(target.intrinsics);
}

}  // namespace tw
