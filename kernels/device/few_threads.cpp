#include "kernels/device/few_threads.h"

#include "ir/schedule/intrinsic.h"
#include "ir/schedule/nest.h"

namespace tw {
namespace {

constexpr int64_t kFew = 64;      // threads
constexpr int64_t kLong = 4096;   // steps of one thread
constexpr int64_t kFreeSize = 8;  // iterations assumed for a free extent

int64_t iterations(const Expr& extent) {
  return eval_int(extent, [](std::string_view) { return kFreeSize; });
}

}  // namespace

std::vector<FewThreads> few_threads(const Kernel& scheduled, const Target& target) {
  std::vector<FewThreads> found;
  for (const StoreRef& store : stores_of(scheduled.body)) {
    FewThreads stage;
    stage.stage = store->label;
    int64_t points = 1, shared = 1;
    for (const Stmt& s : sched::find_path(
             scheduled.body, [&](const StmtNode& n) { return &n == store.stmt().get(); })) {
      const int64_t together = threads_together(*s, target);
      stage.threads *= together, shared *= together;
      const auto* loop = as<stmt::Loop>(s);
      if (!loop) continue;
      const int64_t n = iterations(loop->extent);
      const bool bound = loop->kind == LoopKind::bind;
      (bound ? stage.threads : stage.steps) *= n;
      if (loop->role == AxisRole::scan) stage.loop = loop->var;
      else if (loop->role == AxisRole::spatial) points *= n;
    }
    stage.steps = (stage.steps + shared - 1) / shared;
    if (stage.threads >= kFew || stage.steps < kLong) continue;
    stage.reason = !stage.loop.empty() ? FewThreads::Reason::carried
                   : points < kFew     ? FewThreads::Reason::few_points
                                       : FewThreads::Reason::no_rule;
    found.push_back(std::move(stage));
  }
  return found;
}

std::string to_string(const FewThreads& stage) {
  const auto counted = [](int64_t n, const char* what) {
    return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
  };
  std::string why;
  switch (stage.reason) {
    case FewThreads::Reason::carried:
      why = "loop '" + stage.loop + "' carries values from one iteration to the next";
      break;
    case FewThreads::Reason::few_points: why = "it has few results, of many terms each"; break;
    case FewThreads::Reason::no_rule: why = "no rule deals out its loops to threads"; break;
  }
  return "stage '" + stage.stage + "' runs in " + counted(stage.threads, "thread") + ", " +
         counted(stage.steps, "step") + " each: " + why;
}

}  // namespace tw
