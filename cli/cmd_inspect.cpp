// tilewright inspect: what a model asks for and whether it can be compiled; or what an artifact says of itself.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <ostream>

#include "cli/commands.h"
#include "cli/manifest.h"
#include "cli/progress.h"
#include "cli/tensors.h"
#include "frontend/frontend.h"
#include "packager/artifact.h"

namespace tw {
namespace {

struct InspectArgs {
  std::string file;
  bool no_check = false;
  std::vector<std::string> dims;
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
  int64_t macs = 0, parameters = 0;
  uint64_t parameter_bytes = 0;
};

Totals totals(const Graph& graph) {
  Totals t;
  for (const NodeId id : graph.order()) t.macs += macs(graph, graph.node(id));
  for (size_t i = 0; i < graph.value_count(); ++i) {
    const Value& v = graph.value(ValueId{static_cast<int32_t>(i)});
    if (!v.constant) continue;
    t.parameters += as_const(element_count(v.type.shape)).value_or(0);
    t.parameter_bytes += v.constant->bytes.size();
  }
  return t;
}

std::vector<std::pair<std::string, int>> sorted_counts(const std::map<std::string, int>& counts) {
  std::vector<std::pair<std::string, int>> list(counts.begin(), counts.end());
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.second != b.second ? a.second > b.second : a.first < b.first; });
  return list;
}

void print_model(Console& console, const Model& model) {
  const Totals t = totals(model.graph);
  std::ostream& out = console.out;
  out << model.name << ": opset " << model.opset << (model.producer.empty() ? "" : ", by " + model.producer) << ", "
      << format_bytes(model.file_bytes) << "\n";
  for (const TensorSpec& s : input_specs(model.graph)) out << "input   " << s.name << ": " << type_text(s) << "\n";
  for (const TensorSpec& s : output_specs(model.graph)) out << "output  " << s.name << ": " << type_text(s) << "\n";
  for (const std::string& s : model.graph.symbols) out << "symbol  " << s << "\n";
  out << "MACs " << format_count(static_cast<double>(t.macs)) << ", parameters " << format_count(static_cast<double>(t.parameters)) << " ("
      << format_bytes(t.parameter_bytes) << "), core operators " << model.graph.order().size() << "\n";
  for (const auto& [op, count] : sorted_counts(model.op_counts)) {
    char line[24];
    std::snprintf(line, sizeof line, "%6d  ", count);
    out << line << op << "\n";
  }
  out << "everything in it can be compiled\n";
}

Json model_json(const Model& model) {
  const Totals t = totals(model.graph);
  Json::Object ops;
  for (const auto& [op, count] : model.op_counts) ops.push_back({op, count});
  return Json::Object{{"kind", "model"}, {"name", model.name}, {"sha256", model.sha256}, {"bytes", model.file_bytes}, {"opset", model.opset},
                      {"producer", model.producer}, {"symbols", json_array(model.graph.symbols)}, {"inputs", specs_json(input_specs(model.graph))},
                      {"outputs", specs_json(output_specs(model.graph))}, {"ops", ops}, {"macs", t.macs}, {"parameters", t.parameters},
                      {"parameter_bytes", t.parameter_bytes}, {"gaps", Json::Array{}}};
}

Json gaps_json(const std::vector<Gap>& gaps) {
  Json::Array list;
  for (const Gap& g : gaps)
    list.push_back(Json::Object{{"op", g.op}, {"problem", g.problem}, {"advice", g.advice}, {"count", g.nodes.size()}, {"nodes", json_array(g.nodes)}});
  return Json::Object{{"kind", "model"}, {"gaps", list}};
}

Expected<int> inspect_model(const InspectArgs& args, Console& console) {
  ImportOptions options;
  TW_ASSIGN(options.dims, parse_dims(args.dims));
  TW_ASSIGN(const std::vector<Gap> gaps, gap_report(args.file, options));
  if (!gaps.empty()) {
    if (console.json) write_json(console, gaps_json(gaps));
    else console.out << print_gaps(gaps);
    return kExitUnsupported;
  }
  TW_ASSIGN(const Model model, import_onnx(args.file, options));
  if (console.json) write_json(console, model_json(model));
  else print_model(console, model);
  return kExitOk;
}

std::string arena_text(const Manifest& m) {
  const bool number = !m.arena_bytes.empty() && m.arena_bytes.find_first_not_of("0123456789") == std::string::npos && m.arena_bytes.size() < 19;
  const std::string most = m.max_arena_bytes ? " (at most " + format_bytes(*m.max_arena_bytes) + ")" : "";
  return (number ? format_bytes(std::stoull(m.arena_bytes)) : m.arena_bytes + " bytes") + most + (m.grows ? " and what data ask for" : "");
}

void print_manifest(Console& console, const Manifest& m) {
  std::ostream& out = console.out;
  out << m.name << " for " << m.target_name << ", by tilewright " << m.compiler << "\n"
      << "model   " << format_bytes(m.model_bytes) << ", sha256 " << m.model_sha256 << ", opset " << m.opset << "\n";
  for (const auto& [name, value] : m.dims) out << "dim     " << name << "=" << value << "\n";
  for (const ManifestTensor& t : m.inputs) out << "input   " << to_string(t) << "\n";
  for (const ManifestTensor& t : m.outputs) out << "output  " << to_string(t) << "\n";
  for (const std::string& s : m.symbols) {
    const auto range = m.limits.find(s);
    out << "symbol  " << s << (range == m.limits.end() ? "" : llvm::formatv(" of {0} to {1}", range->second.least, range->second.most).str()) << "\n";
  }
  for (const auto& sizes : m.fast_paths) {
    out << "fast   ";
    for (const auto& [name, value] : sizes) out << " " << name << "=" << value;
    out << "\n";
  }
  std::vector<int> uses(m.kernels.size()), device(m.kernels.size());
  std::map<std::string, int> functions;   // of the runtime library
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
    out << "device  " << m.devices[d] << ": " << kernels << " kernels, " << format_bytes(static_cast<uint64_t>(bytes)) << " of code, "
        << count([&](const ManifestCall& c) { return c.device == number && c.from == number; }) << " of "
        << m.calls.size() << " calls, " << count([&](const ManifestCall& c) { return c.device != c.from && (c.device == number || c.from == number); })
        << " transfers\n";
  }
  for (const std::string& note : m.device_notes) out << "note    " << note << "\n";
  out << "memory  weights " << format_bytes(m.weight_bytes) << ", arena " << arena_text(m) << ", without sharing "
      << format_bytes(m.naive_arena_bytes) << "\n"
      << "calls   bytes spills " << (m.devices.empty() ? "" : "registers  stack shared ") << " hash              schedule kernel\n";
  for (size_t i = 0; i < m.kernels.size(); ++i) {
    const ManifestKernel& k = m.kernels[i];
    char line[64], more[64] = "", schedule[16];
    std::snprintf(line, sizeof line, "%5d %7lld %6lld ", uses[i], static_cast<long long>(k.code_bytes), static_cast<long long>(k.spills));
    if (!m.devices.empty())
      std::snprintf(more, sizeof more, "%9lld %6lld %6lld ", static_cast<long long>(k.registers), static_cast<long long>(k.stack_bytes), static_cast<long long>(k.shared_bytes));
    std::snprintf(schedule, sizeof schedule, "%-8.8s ", k.schedule.c_str());
    out << line << more << " " << k.hash << "  " << schedule << k.name << (device[i] ? " on " + m.devices[static_cast<size_t>(device[i]) - 1] : "")
        << (k.instructions ? ": " + std::to_string(k.instructions) + " instructions, " + std::to_string(k.cycles) + " cycles" : "")
        << (k.tuned.empty() ? "" : ", tuned on " + k.tuned) << "\n";
  }
  for (const auto& [function, count] : functions) {
    char line[24];
    std::snprintf(line, sizeof line, "%5d ", count);
    out << line << "of the runtime library's " << function << "\n";
  }
}

Expected<int> inspect_artifact(const InspectArgs& args, Console& console) {
  TW_ASSIGN(const std::string text, read_manifest(args.file, args.no_check ? Integrity::trust : Integrity::check));
  TW_ASSIGN(const Manifest manifest, parse_manifest(text, args.file));
  if (!console.json) {
    print_manifest(console, manifest);
    return kExitOk;
  }
  TW_ASSIGN(const Json json, parse_json(text, args.file));
  write_json(console, Json::Object{{"kind", "artifact"}, {"manifest", json}});
  return kExitOk;
}

Expected<int> inspect(const InspectArgs& args, Console& console) {
  TW_ASSIGN(const bool artifact, is_artifact(args.file));
  return artifact ? inspect_artifact(args, console) : inspect_model(args, console);
}

}  // namespace

CommandRun define_inspect(Flags& flags) {
  auto args = std::make_shared<InspectArgs>();
  flags.argument("FILE", args->file, "An ONNX model or a compiled library, for any target");
  flags.repeated("--dim", args->dims, "NAME=N", "Bind a symbolic dimension of a model");
  define_no_check(flags, args->no_check);
  return [args](Console& console) { return inspect(*args, console); };
}

}  // namespace tw
