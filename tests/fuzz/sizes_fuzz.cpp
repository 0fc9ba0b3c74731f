// libFuzzer over sizes that come from data. The bytes make a small model, which is imported,
// rewritten, lowered, scheduled and planned. Each step gives an error, or a result that verifies.
// TW_FUZZ_MODEL=FILE keeps the model.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "frontend/frontend.h"
#include "passes/choose/choose_algorithms.h"
#include "passes/fuse_groups.h"
#include "passes/pass.h"
#include "program/plan_program.h"
#include "program/schedules.h"
#include "tests/fuzz/sized_model.h"

namespace tw::fuzz {
namespace {

// An application processor, and a controller whose libraries get all memory from the caller.
const Target& target_of(size_t choice) {
  static const std::vector<Target> targets = [] {
    std::vector<Target> list;
    for (const char* name : {"x86-64-v3", "cortex-m4"})
      list.push_back(llvm::cantFail(load_target(name, {TW_CONFIGS})));
    return list;
  }();
  return targets[choice % targets.size()];
}

Expected<Model> imported(const std::string& bytes, const ImportOptions& options) {
  if (const char* kept = std::getenv("TW_FUZZ_MODEL")) std::ofstream(kept) << bytes;
  const int file = memfd_create("model", 0);
  TW_CHECK(
      file >= 0 && write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
      "no memory for a model of {0} bytes", bytes.size());
  Expected<Model> model = import_onnx("/proc/self/fd/" + std::to_string(file), options);
  close(file);
  return model;
}

// Fuses the model's graph, then all graphs within it at any depth.
std::vector<FusedGraph> fused(const Graph& graph, const Target& target, bool plain) {
  std::vector<const Graph*> graphs = regions_within(graph);
  graphs.insert(graphs.begin(), &graph);
  std::vector<FusedGraph> all;
  for (const Graph* one : graphs) {
    all.push_back({one, plain ? single_groups(*one) : fuse_groups(*one, &target)});
    if (plain) continue;
    choose_algorithms(*one, all.back().groups, target, {});
    fuse_pools(*one, all.back().groups);
  }
  return all;
}

// Checks, with all symbols of this size or the nearest one within their limits, that all buffers
// lie in the arena, and apart while they are alive.
void check_arena(const PlannedProgram& planned, int64_t size) {
  const std::vector<std::string>& symbols = planned.program.symbols;
  const auto value = [&](const Expr& e) {
    return eval_int(e, [&](std::string_view name) {
      TW_CHECK(std::ranges::count(symbols, name), "the arena hangs on symbol '{0}'", name);
      const SymbolLimits limits = limits_of(planned.program.limits, name);
      return std::clamp(size, limits.least, limits.most);
    });
  };
  struct Place {
    int64_t begin, end;
    int first, last;
  };
  std::vector<Place> places;
  for (size_t i = 0; i < planned.buffers.size(); ++i) {
    const Lifetime& buffer = planned.buffers[i];
    const int64_t begin = value(planned.arena.offsets[i]), bytes = value(buffer.bytes);
    TW_CHECK(begin >= 0 && bytes >= 0 && begin <= value(planned.arena.bytes) - bytes,
             "buffer {0} of {1} bytes at {2} is not in the arena of {3} bytes, for sizes of {4}", i,
             bytes, begin, value(planned.arena.bytes), size);
    for (const Place& other : places)
      TW_CHECK(bytes == 0 || begin >= other.end || begin + bytes <= other.begin ||
                   buffer.first > other.last || buffer.last < other.first,
               "buffer {0} overlaps another", i);
    places.push_back({begin, begin + bytes, buffer.first, buffer.last});
  }
}

// Compiles up to the memory plan, as the program does.
Error plan(Graph graph, const Target& target, bool plain) {
  PassContext context{target};
  TW_TRY(run_passes(graph, context, default_pipeline()));
  const std::vector<FusedGraph> groups = fused(graph, target, plain);
  TW_ASSIGN(LoweredProgram lowered, lower_program(groups, {}, target));
  const std::unique_ptr<ModelSchedules> schedules = plain ? std::make_unique<PlainSchedules>()
                                                          : std::make_unique<ModelSchedules>();
  std::vector<RunKernel> scheduled;
  for (const LoweredKernel& kernel : lowered.kernels) {
    TW_ASSIGN(ChosenSchedule chosen, schedules->choose(kernel, target));
    TW_CHECK(chosen.fault.empty(), "{0}", chosen.fault);
    scheduled.push_back(std::move(chosen.run));
  }
  TW_ASSIGN(const PlannedProgram planned,
            plan_program(std::move(lowered), std::move(scheduled), target));
  for (const int64_t size : {1, 2, 7}) check_arena(planned, size);
  return Error::success();
}

Error import_and_plan(Choices& choices) {
  const Target& target = target_of(choices.next());
  const bool plain = choices.below(4) == 1;
  ImportOptions import;
  if (choices.below(4) == 1) import.dims["n"] = number(choices);
  if (choices.below(4) == 1) import.limits["a"] = {1, std::max<int64_t>(number(choices), 1), 1};
  TW_ASSIGN(Model model, imported(sized_model(choices).SerializeAsString(), import));
  const std::string problem = error_text(verify(model.graph));
  TW_CHECK(problem.empty(), "{0}", problem);
  return plan(std::move(model.graph), target, plain);
}

}  // namespace
}  // namespace tw::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tw::fuzz::Choices choices({data, size});
  llvm::consumeError(tw::fuzz::import_and_plan(choices));
  return 0;
}
