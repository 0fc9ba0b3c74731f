#include "cli/text/thread_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cli/text/manifest_counts.h"
#include "ir/core_rates.h"

namespace tw {
namespace {

double imbalance(const PlannedCall& call, int64_t threads) {
  return call.largest * static_cast<double>(threads);
}

}  // namespace

double ThreadPlan::one_ms() const {
  double sum = 0;
  for (const PlannedCall& call : calls) sum += call.one_ms;
  return sum;
}
double ThreadPlan::planned_ms() const {
  double sum = 0;
  for (const PlannedCall& call : calls) sum += call.planned_ms;
  return sum;
}
int64_t ThreadPlan::joins() const {
  int64_t sum = 0;
  for (const PlannedCall& call : calls) sum += call.joins;
  return sum;
}

Expected<ThreadPlan> thread_plan(const Manifest& manifest, const Symbols& symbols,
                                 const Target& target, int64_t threads,
                                 const std::vector<double>& one_ms) {
  ThreadPlan plan{threads, target.cores, core_rates(target).fork_join * 1e3, {}};
  const SymbolNames names = symbol_names(manifest);
  for (size_t i = 0; i < one_ms.size(); ++i) {
    const ManifestCall& call = manifest.calls[i];
    const bool kernel = call.kernel >= 0;
    if (kernel && call.operations.empty())
      return make_error(DiagCode::unsupported,
                        "the library does not say which loops its threads share: compile it again");
    PlannedCall planned{
        call.name, kernel ? manifest.kernels[static_cast<size_t>(call.kernel)].name : call.function,
        one_ms[i]};
    TW_ASSIGN(const double all, value_of(call.operations, symbols, names));
    double alone = all, most = 0;
    planned.largest = 0;
    for (const ManifestLoop& loop : call.loops) {
      if (call.device > 0) break;
      TW_ASSIGN(const double iterations, value_of(loop.iterations, symbols, names));
      TW_ASSIGN(const double most_parts, value_of(loop.most_parts, symbols, names));
      TW_ASSIGN(const double entries, value_of(loop.entries, symbols, names));
      TW_ASSIGN(const double operations, value_of(loop.operations, symbols, names));
      const double parts = std::min({iterations, most_parts, static_cast<double>(threads)});
      if (parts < 2) continue;
      alone -= operations;
      planned.joins += static_cast<int64_t>(entries);
      planned.largest += operations / all * std::ceil(iterations / parts) / iterations;
      if (operations < most) continue;
      most = operations;
      planned.busy = static_cast<int64_t>(parts);
    }
    planned.largest += planned.joins == 0 ? 1 : alone / all;
    planned.planned_ms = planned.one_ms * planned.largest +
                         static_cast<double>(planned.joins) * plan.join_ms;
    plan.calls.push_back(std::move(planned));
  }
  return plan;
}

Json to_json(const ThreadPlan& plan) {
  Json::Array calls;
  for (const PlannedCall& c : plan.calls)
    calls.push_back(Json::Object{{"name", c.call},
                                 {"kernel", c.kernel},
                                 {"one_ms", c.one_ms},
                                 {"joins", c.joins},
                                 {"busy", c.busy},
                                 {"largest_share", c.largest},
                                 {"imbalance", imbalance(c, plan.threads)},
                                 {"planned_ms", c.planned_ms}});
  return Json::Object{{"threads", plan.threads},  {"cores", plan.cores},
                      {"join_ms", plan.join_ms},  {"joins", plan.joins()},
                      {"one_ms", plan.one_ms()},  {"planned_ms", plan.planned_ms()},
                      {"calls", std::move(calls)}};
}

std::string to_string(const ThreadPlan& plan, int columns) {
  std::vector<const PlannedCall*> order;
  for (const PlannedCall& call : plan.calls) order.push_back(&call);
  std::ranges::stable_sort(order, std::greater<>(),
                           [](const PlannedCall* call) { return call->planned_ms; });
  constexpr int kNumbers = 52;
  const int names = std::max(12, columns - kNumbers - 2);
  char text[160];
  const double sum = plan.planned_ms();
  std::string out = "planned ms     %   1 thread  speed-up  joins  busy  imbalance  kernel, call\n";
  for (const PlannedCall* c : order) {
    std::snprintf(text, sizeof text, "%10.4f %5.1f %10.4f %9.2f %6lld %5lld %10.2f", c->planned_ms,
                  sum > 0 ? 100 * c->planned_ms / sum : 0, c->one_ms,
                  c->planned_ms > 0 ? c->one_ms / c->planned_ms : 1,
                  static_cast<long long>(c->joins), static_cast<long long>(c->busy),
                  imbalance(*c, plan.threads));
    out += text + ("  " + fit(c->kernel + "  " + c->call, names)) + "\n";
  }
  const double speed_up = sum > 0 ? plan.one_ms() / sum : 1;
  std::snprintf(text, sizeof text,
                "%10.4f 100.0 %10.4f %9.2f %6lld  on %lld threads: %.0f %% of them are of use; a "
                "join takes %.2f us\n",
                sum, plan.one_ms(), speed_up, static_cast<long long>(plan.joins()),
                static_cast<long long>(plan.threads),
                100 * speed_up / static_cast<double>(plan.threads), plan.join_ms * 1e3);
  out += text;
  if (plan.threads > plan.cores)
    out += "the library is made for " + std::to_string(plan.cores) +
           " cores: kernels whose threads need memory of their own are cut in so many parts; " +
           "compile for a target with cores: " + std::to_string(plan.threads) + "\n";
  return out;
}

}  // namespace tw
