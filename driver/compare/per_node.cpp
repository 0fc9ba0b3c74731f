#include "driver/compare/per_node.h"

#include <algorithm>
#include <chrono>
#include <iterator>

#include "driver/compile/lower_model.h"
#include "driver/run/model_run.h"
#include "packager/loaded_model.h"
#include "passes/fuse_groups.h"
#include "support/temporary_folder.h"

namespace tw {
namespace {

// A value of a group that is seen outside of it, and the output that shows it.
struct Kept {
  ValueId value;  // the compared value, in plain layout
  size_t output = 0;
  Group group;
};

struct KeptGraph {
  Graph graph;
  std::vector<Kept> kept;
  std::vector<Diag> failed;
};

bool used_outside(const Group& group, const std::vector<NodeId>& users) {
  return std::any_of(users.begin(), users.end(), [&](NodeId user) {
    return std::find(group.nodes.begin(), group.nodes.end(), user) == group.nodes.end();
  });
}

// Keeps a value of the group if it is an output or other groups read it.
Error keep(Graph& graph, const Group& group, ValueId made, const std::vector<NodeId>& users,
           KeptGraph& result) {
  const auto& outputs = graph.outputs();
  const auto shown = std::find_if(outputs.begin(), outputs.end(),
                                  [&](const Graph::Output& o) { return o.value == made; });
  if (shown != outputs.end()) {
    result.kept.push_back({made, static_cast<size_t>(shown - outputs.begin()), group});
    return Error::success();
  }
  if (!used_outside(group, users)) return Error::success();
  ValueId plain = made;
  if (!graph.value(made).type.layout.plain()) {
    TW_ASSIGN(plain, graph.add(op::LayoutCast{-1, 0}, {made}));
  }
  result.kept.push_back({plain, graph.outputs().size(), group});
  graph.add_output(plain, "kept_" + std::to_string(graph.outputs().size()));
  return Error::success();
}

// Makes the results of every fused group outputs, in plain layout, behind the model's own.
void keep_all(Graph& graph, KeptGraph& result) {
  const std::vector<std::vector<NodeId>> users = graph.users();
  for (const Group& group : fuse_groups(graph)) {
    for (const NodeId id : group.nodes)
      for (const ValueId made : graph.node(id).outputs())
        if (Error error = keep(graph, group, made, users[static_cast<size_t>(made.index)], result))
          for (Diag& d : take_diags(std::move(error))) result.failed.push_back(std::move(d));
  }
  result.graph = graph;
}

std::string node_text(const Node& node) {
  return node.name + " (" + op_info(node.attrs).name +
         (node.source.empty() ? "" : ", from " + node.source) + ")";
}

Expected<std::vector<Tensor>> run_kept(const std::string& library, const Inputs& inputs,
                                       int threads) {
  TW_ASSIGN(const LoadedModel model, LoadedModel::open(library, Integrity::trust));
  TW_ASSIGN(ModelRun run, ModelRun::create(model.api(), inputs, threads));
  TW_TRY(run.run());
  return run.outputs();
}

struct KeptRun {
  KeptGraph kept;
  std::vector<Tensor> got;  // the library's outputs
};
Expected<KeptRun> run_with_all(const CompileOptions& base, const Target& target,
                               const Inputs& inputs, int threads) {
  TW_ASSIGN(const TemporaryFolder folder, TemporaryFolder::create());
  KeptRun run;
  TW_ASSIGN(Model model, import_model(base));
  TW_ASSIGN(RewrittenGraph rewritten,
            rewrite_graph(std::move(model.graph), base, target, ModelSchedules()));
  keep_all(rewritten.graph, run.kept);
  TW_TRY(make_error(run.kept.failed));
  model.graph = run.kept.graph;
  CompileOptions options = base;
  options.dims = model.dims;
  options.rewritten = true;
  options.output = folder.path() + "/kept.so";
  options.header = folder.path() + "/kept.h";
  TW_ASSIGN(const CompileReport compiled, compile_graph(std::move(model), options, target));
  TW_ASSIGN(run.got, run_kept(compiled.output, inputs, threads));
  return run;
}

std::vector<NodeDifference> differences(const KeptRun& run, ValueId id, const Tensor& reference,
                                        double tolerance) {
  const Graph& graph = run.kept.graph;
  std::vector<NodeDifference> list;
  for (const Kept& k : run.kept.kept) {
    if (k.value != id) continue;
    NodeDifference& node = list.emplace_back();
    node = {graph.value(id).name,
            to_string(graph.value(id).type),
            {},
            group_name(graph, k.group),
            compare(run.got[k.output], reference, tolerance)};
    for (const NodeId n : k.group.nodes) node.nodes.push_back(node_text(graph.node(n)));
  }
  return list;
}

}  // namespace

Expected<PerNodeReport> compare_nodes(const CompileOptions& options, const Target& target,
                                      const Inputs& inputs, const std::vector<Tensor>& want,
                                      double tolerance, int threads) {
  TW_ASSIGN(const KeptRun run, run_with_all(options, target, inputs, threads));
  PerNodeReport report;
  const auto compare_value = [&](ValueId id, const Tensor& reference) {
    for (NodeDifference& node : differences(run, id, reference, tolerance)) {
      ++report.compared;
      if (!node.difference.same && !report.first) report.first = std::move(node);
    }
    return Error::success();
  };
  TW_ASSIGN(const std::vector<Tensor> passed,
            evaluate(run.kept.graph, inputs.tensors, compare_value));
  for (size_t i = 0; i < want.size(); ++i)
    report.passes.push_back(compare(passed[i], want[i], tolerance));
  return report;
}

Expected<NodeErrors> node_errors(const CompileOptions& options, const Target& target,
                                 const Inputs& inputs, double seconds, int threads) {
  TW_ASSIGN(const KeptRun run, run_with_all(options, target, inputs, threads));
  NodeErrors errors;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  bool late = false;
  const auto compare_value = [&](ValueId id, const Tensor& reference) {
    std::ranges::move(differences(run, id, reference, 0), std::back_inserter(errors.results));
    late = std::chrono::steady_clock::now() > end;
    return late ? make_error(DiagCode::limit, "the time is over") : Error::success();
  };
  Expected<std::vector<Tensor>> all = evaluate(run.kept.graph, inputs.tensors, compare_value);
  if (!all && !late) return all.takeError();
  if (!all) llvm::consumeError(all.takeError());  // the results so far are the answer
  errors.left = run.kept.kept.size() - errors.results.size();
  return errors;
}

}  // namespace tw
