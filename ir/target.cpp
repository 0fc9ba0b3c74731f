#include "ir/target.h"

#include <algorithm>
#include <charconv>

#include "support/diag.h"
#include "support/hash.h"
#include "support/lexer.h"
#include "support/names_text.h"

namespace tw {

const char* arch_name(Arch a) {
  switch (a) {
    case Arch::x86_64: return "x86_64";
    case Arch::aarch64: return "aarch64";
    case Arch::arm: return "arm";
    case Arch::riscv64: return "riscv64";
  }
  TW_UNREACHABLE("bad architecture");
}

std::optional<Arch> arch_from_triple(std::string_view triple) {
  std::string_view first = triple.substr(0, triple.find('-'));
  if (first == "x86_64" || first == "amd64") return Arch::x86_64;
  if (first == "aarch64" || first == "arm64") return Arch::aarch64;
  if (first == "riscv64") return Arch::riscv64;
  bool big_endian = first.ends_with("eb") || first.starts_with("armeb");
  if (!big_endian && (first == "arm" || first.starts_with("armv") || first.starts_with("thumbv")))
    return Arch::arm;
  return std::nullopt;
}

Arch Target::arch() const {
  std::optional<Arch> found = arch_from_triple(triple);
  TW_CHECK(found, "no code generator for the triple '{0}'", triple);
  return *found;
}

bool Target::has(const std::string& feature) const {
  return std::find(features.begin(), features.end(), feature) != features.end();
}

namespace {
template <class T>
const T* find(const std::vector<T>& list, std::string_view name) {
  const auto at = std::find_if(list.begin(), list.end(),
                               [&](const T& item) { return item.name == name; });
  return at == list.end() ? nullptr : &*at;
}
}  // namespace

const DeviceAxis* Target::find_axis(std::string_view axis) const { return find(axes, axis); }
const MemoryScope* Target::find_scope(std::string_view scope) const { return find(scopes, scope); }
const Intrinsic* Target::find_intrinsic(std::string_view intrinsic) const {
  return find(intrinsics, intrinsic);
}

std::optional<int64_t> Target::parameter(std::string_view parameter) const {
  const auto at = std::ranges::find(parameters, parameter, &std::pair<std::string, int64_t>::first);
  return at == parameters.end() ? std::nullopt : std::optional(at->second);
}

namespace {

// A YAML scalar, unquoted where that is safe
std::string scalar(const std::string& text) {
  auto safe = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
  };
  bool plain = !text.empty() && text[0] != '-' && text != "null" &&
               std::all_of(text.begin(), text.end(), safe);
  return plain ? text : quoted(text);
}

std::string number(double value) {
  char buffer[64];
  return std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
}

std::string word_list(const std::vector<std::string>& words) {
  std::string out = "[";
  for (size_t i = 0; i < words.size(); ++i) out += (i ? ", " : "") + scalar(words[i]);
  return out + "]";
}

std::string feature_list(const Target& t) {
  std::vector<std::string> features = t.features;
  std::sort(features.begin(), features.end());
  return word_list(features);
}

std::string instruction_set(const Target& t) {
  return "triple: " + scalar(t.triple) + "\ncpu: " + scalar(t.cpu) +
         "\nfeatures: " + feature_list(t) + "\n";
}

std::string sizes(const Target& t) {
  std::string out = "caches: {l1: " + std::to_string(t.l1_bytes) +
                    ", l2: " + std::to_string(t.l2_bytes) + ", l3: " + std::to_string(t.l3_bytes) +
                    "}\n";
  out += "vector_bits: " + std::to_string(t.vector_bits) +
         "\nvector_registers: " + std::to_string(t.vector_registers) + "\n";
  return out + "fast_math: " + (t.fast_math ? "true" : "false") + "\n";
}

std::string emit_text(const EmitCalls& emit) {
  if (emit.lines.size() == 1) return quoted(emit.lines[0]);
  std::string out;
  for (const std::string& line : emit.lines) out += (out.empty() ? "[" : ", ") + quoted(line);
  return out + "]";
}

// Lists the description's own intrinsics; the others follow from the features.
std::string intrinsic_list(const Target& t) {
  std::string out;
  if (!t.without_intrinsics.empty())
    out += "without_intrinsics: " + word_list(t.without_intrinsics) + "\n";
  bool any = false;
  for (const Intrinsic& i : t.intrinsics) {
    if (i.shipped) continue;
    out += any ? "" : "intrinsics:\n";
    any = true;
    out += "  - name: " + scalar(i.name) + "\n";
    if (t.driver.empty())
      out += "    features: " + word_list(i.features) + "\n    rate: " + number(i.rate) + "\n";
    out += "    semantics: " + quoted(i.semantics) + "\n    emit: " + emit_text(i.emit) + "\n";
    if (i.pairs != PairRule::in_order)
      out += std::string("    pairs: ") + pair_rule_name(i.pairs) + "\n";
    if (!i.scopes.empty()) out += "    scopes: " + word_list(i.scopes) + "\n";
    if (!i.setup.empty()) out += "    setup: " + emit_text(i.setup) + "\n";
    if (!i.teardown.empty()) out += "    teardown: " + emit_text(i.teardown) + "\n";
  }
  return out;
}

std::string device(const Target& t) {  // axes and scopes, then instructions
  std::string out;
  if (!t.axes.empty()) out += "axes:\n";
  for (const DeviceAxis& a : t.axes)
    out += "  - {name: " + scalar(a.name) + ", level: " + scalar(a.level) +
           ", max: " + std::to_string(a.max) + "}\n";
  if (!t.scopes.empty()) out += "scopes:\n";
  for (const MemoryScope& m : t.scopes)
    out += "  - {name: " + scalar(m.name) + (m.level.empty() ? "" : ", level: " + scalar(m.level)) +
           ", bytes: " + std::to_string(m.bytes) + "}\n";
  out += intrinsic_list(t);
  return out;
}

// Indented lines "name: value" and "group: {name: value, ..}" for the stated rates
template <class Rates, class Keys, class Print>
std::string said(const Rates& rates, const Keys& keys, const Print& print) {
  std::string out, group;
  for (const auto& key : keys) {
    if (rates.*key.rate == 0) continue;
    if (group != key.group) out += group.empty() ? "" : "}\n";
    const bool opens = group != key.group && *key.group;
    out += opens ? std::string("  ") + key.group + ": {" : *key.group ? ", " : "  ";
    out += std::string(key.name) + ": " + print(rates.*key.rate) + (*key.group ? "" : "\n");
    group = key.group;
  }
  return out + (group.empty() ? "" : "}\n");
}

std::string rates_of_core(const CoreRates& rates) {
  std::string out = said(rates, kCoreRateKeys, [](double rate) { return number(rate); });
  if (!rates.cpus.empty()) out += "  cpus: " + word_list(rates.cpus) + "\n";
  return out.empty() ? "" : "rates:\n" + out;
}

std::string multiprocessor_list(const Target& t) {
  const std::string out = said(t.multiprocessors, kMultiprocessorKeys,
                               [](int64_t rate) { return std::to_string(rate); });
  return out.empty() ? "" : "multiprocessors:\n" + out;
}

std::string rates(const Target& t) {
  return "rates: {flops: " + number(t.rates.flops) + ", bytes: " + number(t.rates.bytes) +
         ", copy_bytes: " + number(t.rates.copy_bytes) + ", launch: " + number(t.rates.launch) +
         ", copy: " + number(t.rates.copy) + "}\ntake_all: " + (t.take_all ? "true" : "false") +
         "\n";
}

// One entry of `devices`. It shares the host's triple and accuracy.
std::string device_entry(const Target& d, bool with_rates) {
  std::string own = "virtual_threads: " + std::to_string(d.virtual_threads) + "\n";
  if (!d.address.empty()) own += "address: " + quoted(d.address) + "\n";
  for (size_t i = 0; i < d.parameters.size(); ++i)
    own += (i ? ", " : "parameters: {") + scalar(d.parameters[i].first) + ": " +
           std::to_string(d.parameters[i].second);
  if (!d.parameters.empty()) own += "}\n";
  const std::string text = "name: " + scalar(d.name) + "\ndriver: " + scalar(d.driver) +
                           "\nfeatures: " + feature_list(d) + "\n" +
                           "max_group: " + std::to_string(d.max_group) +
                           "\nlocal_bytes: " + std::to_string(d.local_bytes) + "\n" + own +
                           sizes(d) + device(d) + multiprocessor_list(d) +
                           (with_rates ? rates(d) : "");
  std::string out;
  for (size_t at = 0, end; at < text.size(); at = end + 1) {
    end = text.find('\n', at);
    out += (at == 0 ? "  - " : "    ") + text.substr(at, end - at + 1);
  }
  return out;
}

constexpr Precision kPrecisions[] = {Precision::fp32, Precision::bf16, Precision::tf32,
                                     Precision::fp16, Precision::automatic};

std::string precision(const Target& t) {
  return t.precision == Precision::fp32
             ? ""
             : std::string("precision: ") + precision_name(t.precision) + "\n";
}

std::string all_devices(const Target& t, bool with_rates) {
  std::string out = t.devices.empty() ? "" : "devices:\n";
  for (const Target& d : t.devices) out += device_entry(d, with_rates);
  return out;
}

}  // namespace

const char* precision_name(Precision precision) {
  switch (precision) {
    case Precision::fp32: return "fp32";
    case Precision::bf16: return "bf16";
    case Precision::tf32: return "tf32";
    case Precision::fp16: return "fp16";
    case Precision::automatic: return "auto";
  }
  TW_UNREACHABLE("bad precision");
}

std::optional<Precision> precision_from_name(std::string_view name) {
  for (const Precision precision : kPrecisions)
    if (name == precision_name(precision)) return precision;
  return std::nullopt;
}

std::string precision_names() { return names_text(kPrecisions, precision_name); }

std::string print(const Target& t) {
  if (!t.isa.empty())
    return "name: " + scalar(t.name) + "\ntriple: " + scalar(t.triple) +
           "\nisa: " + word_list(t.isa) + "\n";
  return "name: " + scalar(t.name) + "\n" + instruction_set(t) +
         "cores: " + std::to_string(t.cores) + "\n" + sizes(t) + "accuracy: " + number(t.accuracy) +
         "\n" + precision(t) + (t.predicted_schedules ? "schedules: predicted\n" : "") +
         rates_of_core(t.core) + device(t) + all_devices(t, true);
}

std::string codegen_hash(const Target& target) {
  std::string text = instruction_set(target) + sizes(target) + device(target) +
                     all_devices(target, false);
  for (const Target& other : target.wider) text += codegen_hash(other);
  return short_hash(text);
}

Target baseline_target(Arch arch) {
  Target t;
  t.name = std::string(arch_name(arch)) + "-baseline";
  t.cpu = "generic";
  t.triple = std::string(arch_name(arch)) + "-linux-gnu";
  switch (arch) {
    case Arch::x86_64:
      t.cpu = "x86-64";
      t.features = {"sse", "sse2"};
      return t;
    case Arch::aarch64:
      t.features = {"fp-armv8", "neon"};
      t.vector_registers = 32;
      return t;
    case Arch::arm:
      t.triple = "armv7-linux-gnueabihf";
      t.features = {"neon"};
      return t;
    case Arch::riscv64:  // RV64GC
      t.cpu = "generic-rv64";
      t.features = {"a", "c", "d", "f", "m"};
      return t;
  }
  TW_UNREACHABLE("bad architecture");
}

}  // namespace tw
