// tilewright inspect: shows what a model holds and whether it can be compiled, or what an artifact
// says of itself.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <ostream>
#include <set>
#include <sstream>

#include "cli/commands/commands.h"
#include "cli/file_roles.h"
#include "cli/given_flags.h"
#include "cli/progress.h"
#include "cli/text/formatted.h"
#include "cli/untrusted.h"
#include "driver/compare/compare.h"
#include "driver/compile/example_sizes.h"
#include "driver/compile/manifest.h"
#include "driver/run/tensors.h"
#include "frontend/frontend.h"
#include "ir/graph/macs.h"
#include "ir/text.h"
#include "packager/artifact.h"
#include "program/fixed_sizes.h"
#include "program/size_conditions.h"

namespace tw {
namespace {

struct InspectArgs {
  std::string file;
  bool no_check = false;
  UntrustedFlags untrusted;
  std::vector<std::string> dims;
  GivenFlags given;
};

Json specs_json(const std::vector<TensorSpec>& specs) {
  Json::Array list;
  for (const TensorSpec& s : specs) {
    Json::Array dims;
    for (const Expr& d : s.dims) {
      const std::optional<int64_t> fixed = as_const(d);
      dims.push_back(fixed ? Json(*fixed) : Json(to_string(d)));
    }
    list.push_back(Json::Object{{"name", s.name}, {"dtype", dtype_name(s.dtype)}, {"dims", dims}});
  }
  return list;
}

std::vector<TensorSpec> output_specs(const Graph& graph) {
  std::vector<TensorSpec> specs;
  for (const Graph::Output& o : graph.outputs()) {
    const TensorType& type = graph.value(o.value).type;
    specs.push_back({o.name, type.dtype, type.shape});
  }
  return specs;
}

struct Totals {
  Expr macs = 0;
  Sizes sizes;  // example sizes of free dimensions; macs_there: MACs at these
  int64_t macs_there = 0, parameters = 0;
  uint64_t parameter_bytes = 0;
  std::vector<std::string> needs;  // conditions on sizes, which a run checks
};

// Counts the constants of the graph and of the graphs that its nodes run; a shared one counts once.
void count_parameters(const Graph& graph, std::set<const std::byte*>& seen, Totals& t) {
  for (size_t i = 0; i < graph.value_count(); ++i) {
    const Value& v = graph.value(ValueId{static_cast<int32_t>(i)});
    if (!v.constant ||
        (!v.constant->bytes.empty() && !seen.insert(v.constant->bytes.data()).second))
      continue;
    t.parameters += as_const(element_count(v.type.shape)).value_or(0);
    t.parameter_bytes += v.constant->bytes.size();
  }
  for (const NodeId id : graph.order())
    for (const Graph* region : regions_of(graph.node(id).attrs)) count_parameters(*region, seen, t);
}

Totals totals(const Model& model) {
  Totals t;
  t.macs = mac_count(model.graph);
  t.sizes = example_sizes(input_specs(model.graph), model.symbol_names, model.graph.limits);
  t.macs_there = value_at(t.macs, t.sizes);
  std::set<const std::byte*> seen;
  count_parameters(model.graph, seen, t);
  t.needs = needs_of(model.graph);
  return t;
}

Json sizes_json(const Sizes& sizes, const SymbolNames& names) {
  Json::Object out;
  for (const auto& [symbol, size] : sizes) out.push_back({symbol_name(names, symbol), size});
  return out;
}

std::vector<std::pair<std::string, int>> sorted_counts(const std::map<std::string, int>& counts) {
  std::vector<std::pair<std::string, int>> list(counts.begin(), counts.end());
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  return list;
}

void print_model(Console& console, const Model& model) {
  const Totals t = totals(model);
  std::ostream& out = console.out;
  out << model.name << ": opset " << model.opset
      << (model.producer.empty() ? "" : ", by " + model.producer) << ", "
      << format_bytes(model.file_bytes) << "\n";
  for (const TensorSpec& s : with_names(input_specs(model.graph), model.symbol_names))
    out << "input   " << s.name << ": " << type_text(s) << "\n";
  for (const TensorSpec& s : with_names(output_specs(model.graph), model.symbol_names))
    out << "output  " << s.name << ": " << type_text(s) << "\n";
  for (const std::string& s : model.graph.symbols)
    out << "symbol  " << symbol_name(model.symbol_names, s) << "\n";
  for (const std::string& need : t.needs) out << "check   " << need << "\n";
  if (!as_const(t.macs)) out << "MACs = " << to_string(t.macs, model.symbol_names) << "\n";
  out << "MACs " << format_count(static_cast<double>(t.macs_there))
      << (as_const(t.macs) ? "" : " at " + sizes_text(t.sizes, model.symbol_names))
      << ", parameters " << format_count(static_cast<double>(t.parameters)) << " ("
      << format_bytes(t.parameter_bytes) << "), core operators " << model.graph.order().size()
      << "\n";
  for (const auto& [op, count] : sorted_counts(model.op_counts)) {
    char line[24];
    std::snprintf(line, sizeof line, "%6d  ", count);
    out << line << op << "\n";
  }
  for (const std::string& warning : model.warnings) out << "warning: " << warning << "\n";
  out << "everything in it can be compiled\n";
}

Json model_json(const Model& model) {
  const Totals t = totals(model);
  Json::Object ops;
  for (const auto& [op, count] : model.op_counts) ops.push_back({op, count});
  std::vector<std::string> symbols;
  for (const std::string& symbol : model.graph.symbols)
    symbols.push_back(symbol_name(model.symbol_names, symbol));
  return Json::Object{
      {"kind", "model"},
      {"name", model.name},
      {"sha256", model.sha256},
      {"bytes", model.file_bytes},
      {"opset", model.opset},
      {"producer", model.producer},
      {"symbols", json_array(symbols)},
      {"inputs", specs_json(with_names(input_specs(model.graph), model.symbol_names))},
      {"outputs", specs_json(with_names(output_specs(model.graph), model.symbol_names))},
      {"ops", ops},
      {"needs", json_array(t.needs)},
      {"macs", t.macs_there},
      {"macs_of_sizes", to_string(t.macs, model.symbol_names)},
      {"sizes", sizes_json(t.sizes, model.symbol_names)},
      {"parameters", t.parameters},
      {"parameter_bytes", t.parameter_bytes},
      {"warnings", json_array(model.warnings)},
      {"gaps", Json::Array{}}};
}

// Problems that keep a model from being compiled as it was asked for, and sizes that help.
struct Findings {
  std::vector<Gap> gaps;
  std::vector<Gap> behind;              // gaps that show once the sizes are bound
  std::map<std::string, int64_t> bind;  // sizes that help; empty: none do
  bool compiled = false;                // with these sizes
};

bool same_gap(const Gap& a, const Gap& b) { return a.op == b.op && a.problem == b.problem; }
bool at_one_place(const Gap& a, const Gap& b) {
  return std::ranges::any_of(a.nodes,
                             [&](const std::string& n) { return std::ranges::count(b.nodes, n); });
}

struct BoundGaps {
  std::map<std::string, int64_t> sizes;
  std::vector<Gap> left;
  size_t there_before = 0;  // gaps at nodes that were refused without the sizes, too
  bool better_than(const BoundGaps& other) const {
    return std::pair(there_before, left.size()) < std::pair(other.there_before, other.left.size());
  }
};

// The gaps with all of these dimensions bound: to the sizes of the example, or to others if these
// do not go together or leave more gaps. nullopt: no sizes go together.
std::optional<BoundGaps> gaps_of_bound(const std::string& file, const ImportOptions& options,
                                       const std::map<std::string, int64_t>& example,
                                       const std::vector<Gap>& before) {
  std::optional<BoundGaps> best;
  for (const int64_t size : {0, 1, 64, 224}) {  // 0: the example's
    ImportOptions bound = options;
    std::map<std::string, int64_t> sizes = example;
    for (auto& [name, own] : sizes) bound.dims[name] = own = size > 0 ? size : own;
    Expected<std::vector<Gap>> left = gap_report(file, bound);
    if (!left) {
      llvm::consumeError(left.takeError());
      continue;
    }
    BoundGaps own{std::move(sizes), std::move(*left), 0};
    for (const Gap& gap : own.left)
      own.there_before += std::ranges::any_of(
          before, [&](const Gap& old) { return at_one_place(old, gap); });
    if (!best || own.better_than(*best)) best = std::move(own);
    if (best->left.empty()) break;
  }
  return best;
}

// The free dimensions that no flag binds, with the sizes of the example.
std::map<std::string, int64_t> free_dims_of(const ModelOutline& model,
                                            const std::map<std::string, int64_t>& given) {
  Sizes all = example_sizes(model.shaped, {}, {});
  for (const auto& [text, size] : given) {
    Expected<std::string> name = find_dim(text, model.shaped);
    if (name) all.erase(*name);
    else llvm::consumeError(name.takeError());
  }
  return {all.begin(), all.end()};
}

// The importer stops behind a node that it refuses, so it is asked again with every free dimension
// bound: gaps that are left do not depend on sizes. Then each dimension is set free again that can
// be.
Findings look_behind(const std::string& file, const ImportOptions& options,
                     const ModelOutline& model, std::vector<Gap> gaps) {
  constexpr size_t kMostDims = 16;
  Findings found{std::move(gaps), {}, {}, false};
  const std::map<std::string, int64_t> example = free_dims_of(model, options.dims);
  if (example.empty() || example.size() > kMostDims) return found;
  std::optional<BoundGaps> all = gaps_of_bound(file, options, example, found.gaps);
  if (!all) return found;
  found.compiled = all->left.empty();
  // A gap at a node that was refused before may be due to these very sizes.
  for (const Gap& gap : all->left)
    if (std::ranges::none_of(found.gaps, [&](const Gap& g) { return at_one_place(g, gap); }))
      found.behind.push_back(gap);
  found.bind = all->sizes;
  ImportOptions bound = options;
  for (const auto& [name, size] : all->sizes) {
    bound.dims = options.dims;
    bound.dims.insert(found.bind.begin(), found.bind.end());
    bound.dims.erase(name);
    Expected<std::vector<Gap>> freer = gap_report(file, bound);
    if (freer && std::ranges::equal(*freer, all->left, same_gap)) found.bind.erase(name);
    if (!freer) llvm::consumeError(freer.takeError());
  }
  return found;
}

std::string bind_flags(const Findings& found) {
  std::string text;
  for (const auto& [name, size] : found.bind) {
    std::string flag = dim_flag(name);  // with "=N" at its end, perhaps quoted
    if (found.compiled) flag.replace(flag.rfind("=N") + 1, 1, std::to_string(size));
    text += " " + flag;
  }
  return text;
}

void print_findings(Console& console, const ModelOutline& model, const Findings& found) {
  std::ostream& out = console.out;
  out << model.name << ": opset " << model.opset
      << (model.producer.empty() ? "" : ", by " + model.producer) << ", "
      << format_bytes(model.file_bytes) << "\n";
  for (const ModelOutline::Tensor& t : model.inputs)
    out << "input   " << t.name << ": " << t.type << "\n";
  for (const ModelOutline::Tensor& t : model.outputs)
    out << "output  " << t.name << ": " << t.type << "\n";
  for (const auto& [op, count] : sorted_counts(model.op_counts))
    out << formatted("%6d  ", count) << op << "\n";
  out << "it cannot be compiled as it is:\n" << print_gaps(found.gaps);
  if (!found.behind.empty()) out << "and, once its sizes are bound:\n" << print_gaps(found.behind);
  if (!found.bind.empty())
    out << (found.compiled ? "everything in it can be compiled with sizes such as"
                           : "sizes to bind:")
        << bind_flags(found) << "\n";
}

Json gaps_json(const std::vector<Gap>& gaps) {
  Json::Array list;
  for (const Gap& g : gaps)
    list.push_back(Json::Object{{"op", g.op},
                                {"problem", g.problem},
                                {"advice", g.advice},
                                {"count", g.nodes.size()},
                                {"nodes", json_array(g.nodes)}});
  return list;
}

Json findings_json(const ModelOutline& model, const Findings& found) {
  const auto tensors = [](const std::vector<ModelOutline::Tensor>& all) {
    Json::Array list;
    for (const ModelOutline::Tensor& t : all)
      list.push_back(Json::Object{{"name", t.name}, {"type", t.type}});
    return list;
  };
  Json::Object ops, bind;
  for (const auto& [op, count] : model.op_counts) ops.push_back({op, count});
  for (const auto& [name, size] : found.bind) bind.push_back({name, size});
  return Json::Object{{"kind", "model"},
                      {"name", model.name},
                      {"sha256", model.sha256},
                      {"bytes", model.file_bytes},
                      {"opset", model.opset},
                      {"producer", model.producer},
                      {"inputs", tensors(model.inputs)},
                      {"outputs", tensors(model.outputs)},
                      {"ops", ops},
                      {"gaps", gaps_json(found.gaps)},
                      {"gaps_once_bound", gaps_json(found.behind)},
                      {"bind", bind}};
}

Expected<int> inspect_model(const InspectArgs& args, Console& console) {
  ImportOptions options;
  TW_ASSIGN(options.dims, parse_dims(args.dims));
  TW_ASSIGN(options.given, args.given.read());
  FileRoles files;
  files.reads_model(args.file);
  TW_ASSIGN(std::vector<Gap> gaps, gap_report(args.file, options));
  if (!gaps.empty()) {
    TW_ASSIGN(const ModelOutline model, outline(args.file));
    const Findings found = look_behind(args.file, options, model, std::move(gaps));
    TW_TRY(files.models_are_unchanged());
    if (console.json) write_json(console, findings_json(model, found));
    else print_findings(console, model, found);
    return exit_code(found.gaps.front().code);  // the code that compile gives
  }
  TW_ASSIGN(Model model, import_onnx(args.file, options));
  TW_TRY(files.models_are_unchanged());
  std::ranges::move(fixed_sizes(model.graph, model.symbol_names),
                    std::back_inserter(model.warnings));
  if (console.json) write_json(console, model_json(model));
  else print_model(console, model);
  return kExitOk;
}

// The arena as a function of the sizes, and its bytes at some sizes
struct Arena {
  Expr bytes;
  Sizes sizes;  // by identifier
  uint64_t there = 0;
  bool usual = true;  // the sizes are the manifest's own
};

Expected<Arena> arena_of(const Manifest& m, const std::map<std::string, int64_t>& chosen) {
  Arena arena;
  arena.usual = chosen.empty();
  TW_ASSIGN(arena.bytes, parse_expr(m.arena_bytes));
  for (const auto& [symbol, name] : symbol_names(m)) {
    const auto own = chosen.find(name), usual = m.example.find(name);
    if (own != chosen.end()) arena.sizes[symbol] = own->second;
    else if (usual != m.example.end()) arena.sizes[symbol] = usual->second;
  }
  arena.there = static_cast<uint64_t>(value_at(arena.bytes, arena.sizes));
  return arena;
}

std::string arena_text(const Manifest& m, const Arena& arena) {
  const SymbolNames names = symbol_names(m);
  const std::string most = m.max_arena_bytes ? " (at most " + format_bytes(*m.max_arena_bytes) + ")"
                                             : "";
  return format_bytes(arena.there) +
         (arena.sizes.empty() ? "" : " at " + sizes_text(arena.sizes, names)) + most +
         (m.grows ? " and what data ask for" : "");
}

uint64_t code_bytes(const Manifest& m) {
  int64_t bytes = 0;
  for (const ManifestKernel& k : m.kernels) bytes += k.code_bytes;
  return static_cast<uint64_t>(bytes);
}

std::string weights_text(const Manifest& m) {
  return format_bytes(m.weight_bytes) +
         (m.weights_file.empty() ? "" : " in '" + m.weights_file + "'");
}

// The programs of a library for several processors
std::string path_lines(const Manifest& m) {
  const auto line = [](const std::string& name, const Manifest& path) {
    return "path    " + name + ": " + std::to_string(path.kernels.size()) + " kernels, " +
           format_bytes(code_bytes(path)) + " of code, " + std::to_string(path.calls.size()) +
           " calls";
  };
  std::string text;
  for (const Manifest& path : m.paths) text += line(path.target_name, path) + "\n";
  return text.empty() ? "" : text + line("otherwise", m) + "; they are listed below\n";
}

// The terms on which `compile --verify` held the library against its model; "": it did not
std::string verified_line(const Manifest& m) {
  if (!m.verified) return "";
  return "verified when it was compiled, on " +
         (m.verified->data.empty() ? "seeded inputs" : "data of sha256 " + m.verified->data) +
         ", within " + number_text(m.verified->tolerance) + " of an output's range\n";
}

void print_interface(std::ostream& out, const Manifest& m) {
  for (const auto& [name, value] : m.dims) out << "dim     " << name << "=" << value << "\n";
  for (const ManifestTensor& t : m.inputs) out << "input   " << to_string(t) << "\n";
  for (const ManifestTensor& t : m.outputs) out << "output  " << to_string(t) << "\n";
  for (const std::string& s : m.symbols) {
    const auto range = m.limits.find(s);
    out << "symbol  " << s
        << (range == m.limits.end()
                ? ""
                : llvm::formatv(" of {0} to {1}", range->second.least, range->second.most).str())
        << "\n";
  }
  for (const std::string& need : m.needs) out << "check   " << need << "\n";
  for (const auto& sizes : m.fast_paths) {
    out << "fast   ";
    for (const auto& [name, value] : sizes) out << " " << name << "=" << value;
    out << "\n";
  }
}

void print_manifest(Console& console, const Manifest& m, const Arena& arena) {
  std::ostream& out = console.out;
  out << m.name << " for " << m.target_name << ", by tilewright " << m.compiler << "\n"
      << path_lines(m) << "model   " << format_bytes(m.model_bytes) << ", sha256 " << m.model_sha256
      << ", opset " << m.opset << "\n"
      << verified_line(m);
  print_interface(out, m);
  std::vector<int> uses(m.kernels.size()), device(m.kernels.size());
  std::map<std::string, int> functions;  // calls of functions in the runtime library
  for (const ManifestCall& c : m.calls) {
    if (c.kernel < 0) {
      ++functions[c.function];
      continue;
    }
    ++uses[static_cast<size_t>(c.kernel)];
    if (c.device == c.from) device[static_cast<size_t>(c.kernel)] = c.device;
  }
  for (size_t d = 0; d < m.devices.size(); ++d) {
    auto count = [&](auto is) { return std::count_if(m.calls.begin(), m.calls.end(), is); };
    const int number = static_cast<int>(d) + 1;
    int64_t kernels = 0, bytes = 0;
    for (size_t k = 0; k < m.kernels.size(); ++k)
      if (device[k] == number) ++kernels, bytes += m.kernels[k].code_bytes;
    out << "device  " << m.devices[d] << ": " << kernels << " kernels, "
        << format_bytes(static_cast<uint64_t>(bytes)) << " of code, "
        << count([&](const ManifestCall& c) { return c.device == number && c.from == number; })
        << " of " << m.calls.size() << " calls, " << count([&](const ManifestCall& c) {
             return c.device != c.from && (c.device == number || c.from == number);
           })
        << " transfers\n";
  }
  for (const std::string& note : m.device_notes) out << "note    " << note << "\n";
  out << "memory  weights " << weights_text(m) << ", arena " << arena_text(m, arena);
  if (arena.usual) out << ", without sharing " << format_bytes(m.naive_arena_bytes);
  out << "\n";
  if (!as_const(arena.bytes))
    out << "arena   in bytes: " << to_string(arena.bytes, symbol_names(m)) << "\n";
  out << "calls   bytes spills " << (m.devices.empty() ? "" : "registers  stack shared ")
      << " hash              schedule kernel\n";
  for (size_t i = 0; i < m.kernels.size(); ++i) {
    const ManifestKernel& k = m.kernels[i];
    char line[64], more[64] = "", schedule[16];
    std::snprintf(line, sizeof line, "%5d %7lld %6lld ", uses[i],
                  static_cast<long long>(k.code_bytes), static_cast<long long>(k.spills));
    if (!m.devices.empty())
      std::snprintf(more, sizeof more, "%9lld %6lld %6lld ", static_cast<long long>(k.registers),
                    static_cast<long long>(k.stack_bytes), static_cast<long long>(k.shared_bytes));
    std::snprintf(schedule, sizeof schedule, "%-8.8s ", k.schedule.c_str());
    std::ostringstream row;
    row << line << more << " " << k.hash << "  " << schedule << k.name
        << (device[i] ? " on " + m.devices[static_cast<size_t>(device[i]) - 1] : "")
        << (k.instructions ? ": " + std::to_string(k.instructions) + " instructions, " +
                                 std::to_string(k.cycles) + " cycles"
                           : "")
        << (k.tuned.empty() ? "" : ", tuned on " + k.tuned);
    out << fit(row.str(), console.columns) << "\n";
  }
  for (const auto& [function, count] : functions) {
    char line[24];
    std::snprintf(line, sizeof line, "%5d ", count);
    out << line << "of the runtime library's " << function << "\n";
  }
}

Expected<int> inspect_artifact(const InspectArgs& args, Console& console) {
  TW_ASSIGN(const std::string text,
            read_manifest(args.file, args.no_check ? Integrity::trust : Integrity::check));
  TW_ASSIGN(const Manifest manifest, parse_manifest(text, args.file));
  if (!console.json) {
    TW_ASSIGN(const auto chosen, bind_dims(args.dims, input_specs(manifest)));
    TW_ASSIGN(const Arena arena, arena_of(manifest, chosen));
    print_manifest(console, manifest, arena);
    return kExitOk;
  }
  TW_ASSIGN(const Json json, parse_json(text, args.file));
  write_json(console, Json::Object{{"kind", "artifact"}, {"manifest", json}});
  return kExitOk;
}

Expected<int> inspect(const InspectArgs& args, Console& console) {
  TW_ASSIGN(
      const Confined work,
      confined(args.untrusted, {folder_of(args.file), cache_folder(args.file), args.given.file()},
               {}, console));
  if (work.code) return *work.code;
  TW_ASSIGN(const bool artifact, is_artifact(args.file));
  return artifact ? inspect_artifact(args, console) : inspect_model(args, console);
}

}  // namespace

CommandRun define_inspect(Flags& flags) {
  auto args = std::make_shared<InspectArgs>();
  flags.argument("FILE", args->file, "An ONNX model or a compiled library, for any target");
  flags.repeated("--dim", args->dims, "NAME=N",
                 "Bind a free dimension of a model: batch=1, or by input and axis: x[3]=320; of a "
                 "library: tell its arena at this size");
  args->untrusted.define(flags);
  args->given.define(flags);
  define_no_check(flags, args->no_check);
  return [args](Console& console) { return inspect(*args, console); };
}

}  // namespace tw
