#include "driver/compare/compare_builds.h"

#include <algorithm>
#include <filesystem>

#include "driver/compile/example_sizes.h"
#include "ir/text.h"
#include "packager/artifact.h"

namespace tw {
namespace {

Expected<int64_t> arena_at(const Manifest& m, const std::map<std::string, int64_t>& example) {
  TW_ASSIGN(const Expr bytes, parse_expr(m.arena_bytes));
  Sizes sizes;
  for (const auto& [symbol, name] : symbol_names(m))
    if (const auto size = example.find(name); size != example.end()) sizes[symbol] = size->second;
  return value_at(bytes, sizes);
}

int64_t sum_of(const Manifest& m, int64_t ManifestKernel::* field) {
  int64_t sum = 0;
  for (const ManifestKernel& k : m.kernels) sum += k.*field;
  return sum;
}

std::vector<ChangedFact> changed_facts(const Manifest& a, const Manifest& b) {
  std::vector<ChangedFact> all = {
      {"compiler", a.compiler, b.compiler},
      {"name", a.name, b.name},
      {"model", a.model_sha256, b.model_sha256},
      {"target", a.target_name, b.target_name},
      {"target's code", a.target_hash, b.target_hash},
  };
  std::erase_if(all, [](const ChangedFact& f) { return f.before == f.after; });
  return all;
}

// Compares the kernels as scheduled, and the code made of them, but not where schedules come from.
bool same(const ManifestKernel& a, const ManifestKernel& b) {
  return a.hash == b.hash && a.code_bytes == b.code_bytes && a.spills == b.spills &&
         a.cycles == b.cycles;
}

void compare_kernels(const Manifest& a, const Manifest& b, BuildDifference& out) {
  std::multimap<std::string, const ManifestKernel*> waiting;
  for (const ManifestKernel& k : b.kernels) waiting.emplace(k.name, &k);
  for (const ManifestKernel& k : a.kernels) {
    const auto other = waiting.lower_bound(k.name);
    if (other == waiting.end() || other->first != k.name) {
      out.kernels.push_back({k, std::nullopt});
      continue;
    }
    if (same(k, *other->second))
      ++out.equal_kernels, out.other_sources += k.schedule != other->second->schedule;
    else out.kernels.push_back({k, *other->second});
    waiting.erase(other);
  }
  for (const ManifestKernel& k : b.kernels)
    for (const auto& [name, left] : waiting)
      if (left == &k) out.kernels.push_back({std::nullopt, k});
}

std::string change_of(int64_t before, int64_t after) {
  if (before == after) return "";
  const std::string sign = after > before ? "+" : "";
  std::string text = sign + std::to_string(after - before);
  if (before > 0)
    text += llvm::formatv(" ({0}{1:F1} %)", sign,
                          100.0 * static_cast<double>(after - before) / static_cast<double>(before))
                .str();
  return text;
}

std::string kernel_line(const ChangedKernel& k) {
  const ManifestKernel& any = k.after ? *k.after : *k.before;
  const auto both = [&](auto text) {
    const std::string a = k.before ? text(*k.before) : "-", b = k.after ? text(*k.after) : "-";
    return a == b ? a : a + " > " + b;
  };
  const char* what = !k.before                         ? "added"
                     : !k.after                        ? "removed"
                     : k.before->hash == k.after->hash ? "code"
                                                       : "changed";
  return llvm::formatv("{0,-8} {1,-18} {2,-11} {3,-19} {4,-22} {5}", what,
                       both([](const ManifestKernel& m) { return std::to_string(m.code_bytes); }),
                       both([](const ManifestKernel& m) { return std::to_string(m.spills); }),
                       both([](const ManifestKernel& m) { return m.hash.substr(0, 8); }),
                       both([](const ManifestKernel& m) { return m.schedule; }), any.name)
      .str();
}

Json kernel_json(const std::optional<ManifestKernel>& k) {
  if (!k) return Json();
  return Json::Object{{"hash", k->hash},     {"schedule", k->schedule},
                      {"tuned", k->tuned},   {"code_bytes", k->code_bytes},
                      {"spills", k->spills}, {"registers", k->registers},
                      {"cycles", k->cycles}};
}

}  // namespace

Expected<ComparedBuild> read_build(const std::string& library) {
  ComparedBuild build;
  TW_ASSIGN(const std::string text, read_manifest(library));
  TW_ASSIGN(build.manifest, parse_manifest(text, library));
  std::error_code none;
  build.artifact_bytes = static_cast<int64_t>(std::filesystem::file_size(library, none));
  return build;
}

Expected<BuildDifference> compare_builds(const ComparedBuild& before, const ComparedBuild& after) {
  const Manifest &a = before.manifest, &b = after.manifest;
  BuildDifference out;
  out.facts = changed_facts(a, b);
  TW_ASSIGN(const int64_t arena_a, arena_at(a, a.example));
  TW_ASSIGN(const int64_t arena_b, arena_at(b, a.example));
  const auto count = [](const auto& list) { return static_cast<int64_t>(list.size()); };
  out.sizes = {
      {"artifact bytes", before.artifact_bytes, after.artifact_bytes},
      {"weight bytes", static_cast<int64_t>(a.weight_bytes), static_cast<int64_t>(b.weight_bytes)},
      {"arena bytes", arena_a, arena_b},
      {"code bytes", sum_of(a, &ManifestKernel::code_bytes),
       sum_of(b, &ManifestKernel::code_bytes)},
      {"spills", sum_of(a, &ManifestKernel::spills), sum_of(b, &ManifestKernel::spills)},
      {"kernels", count(a.kernels), count(b.kernels)},
      {"calls", count(a.calls), count(b.calls)},
  };
  compare_kernels(a, b, out);
  return out;
}

std::string to_string(const BuildDifference& d, int columns) {
  std::string text;
  for (const ChangedFact& f : d.facts)
    text += f.name + ": " + f.before.substr(0, 16) + " > " + f.after.substr(0, 16) + "\n";
  for (const ComparedSize& s : d.sizes)
    text += llvm::formatv("{0,-15} {1,12} {2,12}  {3}\n", s.name, s.before, s.after,
                          change_of(s.before, s.after))
                .str();
  text += std::to_string(d.equal_kernels) +
          (d.equal_kernels == 1 ? " kernel is equal" : " kernels are equal");
  if (d.other_sources > 0)
    text += ", " + std::to_string(d.other_sources) + " of them with the schedule from elsewhere";
  text += "\n";
  if (d.kernels.empty()) return text;
  if (std::ranges::any_of(d.kernels, [](const ChangedKernel& k) {
        return k.before && k.after && k.before->hash == k.after->hash;
      }))
    text += "code: one kernel, of which the two made different code\n";
  text += llvm::formatv("{0,-8} {1,-18} {2,-11} {3,-19} {4,-22} kernel\n", "", "code bytes",
                        "spills", "hash as scheduled", "from")
              .str();
  for (const ChangedKernel& k : d.kernels) {
    std::string line = kernel_line(k);
    if (line.size() > static_cast<size_t>(columns))
      line = line.substr(0, static_cast<size_t>(columns) - 2) + "..";
    text += line + "\n";
  }
  return text;
}

Json to_json(const BuildDifference& d) {
  Json::Array facts, sizes, kernels;
  for (const ChangedFact& f : d.facts)
    facts.push_back(Json::Object{{"name", f.name}, {"before", f.before}, {"after", f.after}});
  for (const ComparedSize& s : d.sizes)
    sizes.push_back(Json::Object{{"name", s.name}, {"before", s.before}, {"after", s.after}});
  for (const ChangedKernel& k : d.kernels)
    kernels.push_back(Json::Object{{"name", k.after ? k.after->name : k.before->name},
                                   {"before", kernel_json(k.before)},
                                   {"after", kernel_json(k.after)}});
  return Json::Object{{"facts", facts},
                      {"sizes", sizes},
                      {"equal_kernels", static_cast<int64_t>(d.equal_kernels)},
                      {"other_sources", static_cast<int64_t>(d.other_sources)},
                      {"kernels", kernels}};
}

}  // namespace tw
