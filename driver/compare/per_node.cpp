#include "driver/compare/per_node.h"

#include <algorithm>

#include "driver/compile/lower_model.h"
#include "driver/run/model_run.h"
#include "driver/run/temporary_folder.h"
#include "packager/loaded_model.h"
#include "passes/fuse_groups.h"

namespace tw {
namespace {

// A value of a group that is seen outside of it, and the output that shows it.
struct Kept {
  ValueId value;  // what is compared: plain layout
  size_t output = 0;
  std::vector<NodeId> nodes;  // the group
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

// Shows a value of the group that is an output or read outside.
Error keep(Graph& graph, const Group& group, ValueId made, const std::vector<NodeId>& users,
           KeptGraph& result) {
  const auto& outputs = graph.outputs();
  const auto shown = std::find_if(outputs.begin(), outputs.end(),
                                  [&](const Graph::Output& o) { return o.value == made; });
  if (shown != outputs.end()) {
    result.kept.push_back({made, static_cast<size_t>(shown - outputs.begin()), group.nodes});
    return Error::success();
  }
  if (!used_outside(group, users)) return Error::success();
  ValueId plain = made;
  if (!graph.value(made).type.layout.plain()) {
    TW_ASSIGN(plain, graph.add(op::LayoutCast{-1, 0}, {made}));
  }
  result.kept.push_back({plain, graph.outputs().size(), group.nodes});
  graph.add_output(plain, "kept_" + std::to_string(graph.outputs().size()));
  return Error::success();
}

// Makes every fused group's results outputs, in plain layout, behind the model's own.
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

}  // namespace

Expected<PerNodeReport> compare_nodes(const CompileOptions& base, const Target& target,
                                      const Inputs& inputs, const std::vector<Tensor>& want,
                                      double tolerance, int threads) {
  TW_ASSIGN(const TemporaryFolder folder, TemporaryFolder::create());
  KeptGraph kept;
  TW_ASSIGN(Model model, import_onnx(base.model, {base.dims, base.limits}));
  TW_ASSIGN(RewrittenGraph rewritten,
            rewrite_graph(std::move(model.graph), base, target, ModelSchedules()));
  keep_all(rewritten.graph, kept);
  TW_TRY(make_error(kept.failed));
  model.graph = kept.graph;
  CompileOptions options = base;
  options.dims = model.dims;
  options.rewritten = true;
  options.output = folder.path() + "/kept.so";
  options.header = folder.path() + "/kept.h";
  TW_ASSIGN(const CompileReport compiled, compile_graph(std::move(model), options, target));
  TW_ASSIGN(const std::vector<Tensor> got, run_kept(compiled.output, inputs, threads));

  PerNodeReport report;
  const auto compare_value = [&](ValueId id, const Tensor& reference) {
    for (const Kept& k : kept.kept) {
      if (k.value != id) continue;
      ++report.compared;
      const Difference d = compare(got[k.output], reference, tolerance);
      if (d.same || report.first) return;
      NodeDifference node{kept.graph.value(id).name, to_string(kept.graph.value(id).type), {}, d};
      for (const NodeId n : k.nodes) node.nodes.push_back(node_text(kept.graph.node(n)));
      report.first = std::move(node);
    }
  };
  TW_ASSIGN(const std::vector<Tensor> passed, evaluate(kept.graph, inputs.tensors, compare_value));
  for (size_t i = 0; i < want.size(); ++i)
    report.passes.push_back(compare(passed[i], want[i], tolerance));
  return report;
}

}  // namespace tw
