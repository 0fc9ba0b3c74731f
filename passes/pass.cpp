// The pass runner. Verifying, timing, printing and bisecting happen only here.
#include "passes/pass.h"

#include <algorithm>
#include <chrono>

#include "support/repro.h"

namespace tw {
namespace {

#ifdef TW_VERIFY_EACH
constexpr bool kVerifyEach = true;
#else
constexpr bool kVerifyEach = false;
#endif
// Hashing a graph reads its constants. With more bytes than this, the check of "unchanged" costs
// more than it finds.
constexpr size_t kHashedBytes = 64 << 20;

size_t constant_bytes(const Graph& graph) {
  size_t bytes = 0;
  for (size_t i = 0; i < graph.value_count(); ++i) {
    const Value& value = graph.value(ValueId{static_cast<int32_t>(i)});
    if (value.constant) bytes += value.constant->bytes.size();
  }
  return bytes;
}

bool wants_print(const RunOptions& options, std::string_view pass, bool changed) {
  if (!options.print) return false;
  if (options.print_changed && changed) return true;
  return std::any_of(options.print_after.begin(), options.print_after.end(),
                     [&](const std::string& name) { return name == "all" || name == pass; });
}

Expected<const Pass*> wanted_pass(const std::string& name) {
  if (const Pass* pass = find_pass(name)) return pass;
  Diag diag{DiagCode::invalid_argument, "unknown pass '" + name + "'", {}, {}};
  std::string known;
  for (const Pass& pass : all_passes())
    known += (known.empty() ? "" : ", ") + std::string(pass.name);
  diag.notes.push_back("known passes: " + known);
  return make_error(std::move(diag));
}

// Runs one pass and checks it. A graph that does not verify afterwards is a bug of the pass.
Expected<bool> run_one(Graph& graph, PassContext& context, const Pass& pass, bool verified) {
  bool hashed = kVerifyEach && constant_bytes(graph) <= kHashedBytes;
  std::string before = hashed ? graph_hash(graph) : "";
  context.report.clear();
  Graph untouched = graph;  // shares the constants
  CheckContext reproducer(std::string("pass ") + pass.name, [&] { return print(untouched); });
  TW_ASSIGN(bool changed, pass.run(graph, context));
  if (verified)
    if (Error error = verify(graph))
      TW_UNREACHABLE("pass {0} broke the graph: {1}", pass.name, error_text(std::move(error)));
  if (hashed)
    TW_CHECK(changed || graph_hash(graph) == before,
             "pass {0} changed the graph and did not say so", pass.name);
  return changed;
}

Error run_on_regions(Graph& graph, PassContext& context, const std::vector<std::string>& pipeline,
                     const RunOptions& options) {
  RunOptions inner;
  inner.verify_each = options.verify_each;
  inner.limit = options.limit;
  for (NodeId id : graph.order()) {
    Error error = Error::success();
    if (!regions_of(graph.node(id).attrs).empty())
      for_each_region(graph.node(id).attrs, [&](Region& region) {
        if (error) return;
        Graph own = *region.graph;
        error = run_passes(own, context, pipeline, inner);
        region.graph = std::make_shared<const Graph>(std::move(own));
      });
    if (error) return error;
  }
  return Error::success();
}

}  // namespace

const Pass* find_pass(std::string_view name) {
  for (const Pass& pass : all_passes())
    if (name == pass.name) return &pass;
  return nullptr;
}

Error run_passes(Graph& graph, PassContext& context, const std::vector<std::string>& pipeline,
                 const RunOptions& options) {
  std::vector<const Pass*> passes;
  for (const std::string& name : pipeline) {
    TW_ASSIGN(const Pass* pass, wanted_pass(name));
    passes.push_back(pass);
  }
  for (const std::string& name : options.print_after)
    if (name != "all")
      if (Error error = wanted_pass(name).takeError()) return error;
  bool verified = kVerifyEach || options.verify_each;
  if (verified) TW_TRY(verify(graph));
  if (options.limit >= 0 && static_cast<size_t>(options.limit) < passes.size())
    passes.resize(static_cast<size_t>(options.limit));
  TW_TRY(run_on_regions(graph, context, pipeline, options));
  for (const Pass* pass : passes) {
    auto start = std::chrono::steady_clock::now();
    TW_ASSIGN(bool changed, run_one(graph, context, *pass, verified));
    std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    if (options.on_pass) options.on_pass(pass->name, time.count(), changed, context.report);
    if (wants_print(options, pass->name, changed))
      options.print("after " + std::string(pass->name), print(graph));
  }
  return Error::success();
}

}  // namespace tw
