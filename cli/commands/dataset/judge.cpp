// tilewright dataset stat, check and rank: show what a set holds, and how sure it is.
#include "cli/commands/dataset/actions.h"

#include <cstdio>
#include <ostream>

#include "cli/interrupts.h"
#include "cli/progress.h"
#include "cli/targets.h"
#include "cli/tune_flags.h"
#include "driver/dataset/rank.h"
#include "driver/dataset/report.h"
#include "driver/tune/predictor_files.h"
#include "support/parallel.h"

namespace tw {
namespace {

Json to_json(const Platform& p) {
  return Json::Object{{"id", p.id},           {"target", p.name},
                      {"key", p.target},      {"machine", p.machine},
                      {"threads", p.threads}, {"kind", label_kind_name(p.kind)}};
}
Json to_json(const FamilyStat& f) {
  Json::Object failures;
  for (const auto& [status, count] : f.failures) failures.push_back({status, count});
  return Json::Object{{"network", f.network},    {"tasks", f.tasks},   {"labels", f.programs},
                      {"failures", failures},    {"spread", f.spread}, {"default", f.standard},
                      {"again", f.again},        {"noise", f.noise},   {"top1", f.top1},
                      {"contended", f.contended}};
}

std::string family_line(const FamilyStat& f) {
  int64_t failed = 0;
  for (const auto& [status, count] : f.failures) failed += count;
  char text[160];
  std::snprintf(text, sizeof text, "%-14.14s %5d %8lld %6lld %7.2f %7.2f %6lld %6.1f%% %6.3f %5lld",
                f.network.c_str(), f.tasks, static_cast<long long>(f.programs),
                static_cast<long long>(failed), f.spread, f.standard,
                static_cast<long long>(f.again), 100 * f.noise, f.top1,
                static_cast<long long>(f.contended));
  return text;
}

// The ways to rank that --tuner names, or all that are installed. Errors: a kind that is not
// installed.
Error choose_ways(const DatasetArgs& args, RankRequest& request) {
  constexpr const char* kTrees = "xgboost";
  std::vector<std::string> names = args.tuners;
  if (names.empty()) {
    names = predictor_kinds(predictor_dirs());
    names.emplace_back(kTrees);
  }
  request.trees = std::erase(names, kTrees) > 0;
  for (const std::string& kind : names) {
    TW_ASSIGN(auto predictors, load_predictors(kind, predictor_dirs()));
    request.predictors.push_back(std::move(predictors));
  }
  return Error::success();
}

}  // namespace

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

Expected<int> stat_dataset(const DatasetArgs&, DataSet& set, Console& console) {
  TW_ASSIGN(const SetStat s, statistics(set));
  if (console.json) {
    Json::Array platforms, likeness;
    for (const PlatformStat& p : s.platforms) {
      Json::Array families;
      for (const FamilyStat& f : p.families) families.push_back(to_json(f));
      platforms.push_back(Json::Object{
          {"platform", to_json(p.platform)}, {"all", to_json(p.all)}, {"families", families}});
    }
    for (const Likeness& l : s.likeness)
      likeness.push_back(Json::Object{{"a", l.a},
                                      {"b", l.b},
                                      {"tasks", l.tasks},
                                      {"correlation", l.correlation},
                                      {"trivial", l.trivial()}});
    write_json(console, Json::Object{{"set", set.path()},
                                     {"tasks", s.tasks},
                                     {"complete", s.complete},
                                     {"programs", s.programs},
                                     {"splits", splits_json(s.splits)},
                                     {"platforms", platforms},
                                     {"likeness", likeness}});
    return kExitOk;
  }
  console.out << set.path() << ": " << s.tasks << " tasks, " << s.complete
              << " of them with all programs; " << s.programs << " programs\n";
  for (size_t i = 0; i < s.splits.size(); ++i)
    console.out << (i ? ", " : "  ") << s.splits[i] << " " << split_name(static_cast<Split>(i));
  console.out << "\n";
  for (const PlatformStat& p : s.platforms) {
    console.out << "\nplatform " << p.platform.id << ": " << platform_text(p.platform) << "\n"
                << "network        tasks   labels failed  spread default  again  noise   top1 "
                   "disturbed\n";
    for (const FamilyStat& f : p.families) console.out << family_line(f) << "\n";
    console.out << family_line(p.all) << "\n";
    for (const auto& [status, count] : p.all.failures)
      console.out << "  " << count << " " << status << "\n";
  }
  for (const Likeness& l : s.likeness)
    if (l.tasks > 0) {
      char text[160];
      std::snprintf(text, sizeof text,
                    "platforms %lld and %lld: rank correlation %.3f over %d tasks%s",
                    static_cast<long long>(l.a), static_cast<long long>(l.b), l.correlation,
                    l.tasks, l.trivial() ? "; to know one is to know the other" : "");
      console.out << text << "\n";
    }
  return kExitOk;
}

Expected<int> check_dataset(const DatasetArgs& args, DataSet& set, Console& console) {
  CheckRequest request;
  request.target_folders = config_dirs();
  request.share = args.share / 100, request.jobs = threads_or_all(0);
  request.seed = args.seed.value_or(1);
  Interrupts interrupts;
  request.stop = &interrupts.asked();
  Progress progress(console);
  progress.begin("measure");
  request.watch = [&](const std::string& text) { progress.detail(text); };
  TW_ASSIGN(const std::vector<CheckedPlatform> checked, check_labels(set, request));
  progress.end();
  Json::Array list;
  for (const CheckedPlatform& c : checked) {
    list.push_back(Json::Object{{"platform", to_json(c.platform)},
                                {"tasks", c.tasks},
                                {"programs", c.programs},
                                {"failed", c.failed},
                                {"correlation", c.correlation},
                                {"deviation", c.deviation}});
    if (console.json) continue;
    char text[160];
    std::snprintf(
        text, sizeof text,
        "  %lld programs of %d tasks: rank correlation %.3f, median deviation %s, %lld fail",
        static_cast<long long>(c.programs), c.tasks, c.correlation, percent(c.deviation).c_str(),
        static_cast<long long>(c.failed));
    console.out << platform_text(c.platform) << "\n" << text << "\n";
  }
  if (console.json) write_json(console, Json::Object{{"set", set.path()}, {"platforms", list}});
  return kExitOk;
}

Expected<int> rank_dataset(const DatasetArgs& args, DataSet& set, Console& console) {
  RankRequest request;
  TW_TRY(choose_ways(args, request));
  request.of_pool = args.most_ranked;
  request.target_folders = config_dirs(), request.jobs = threads_or_all(0);
  request.seed = args.seed.value_or(1), request.platform = args.of_platform;
  Progress progress(console);
  progress.begin("rank");
  request.watch = [&](const std::string& text) { progress.detail(text); };
  TW_ASSIGN(const std::vector<RankTable> tables, rank_tasks(set, request));
  progress.end();
  Json::Array list;
  for (const RankTable& t : tables) {
    Json::Array scores;
    for (const RankScore& s : t.scores)
      scores.push_back(Json::Object{{"method", s.method},
                                    {"top1", s.top1},
                                    {"top5", s.top5},
                                    {"top10", s.top10},
                                    {"least", s.least}});
    list.push_back(
        Json::Object{{"split", t.split}, {"tasks", t.tasks}, {"pool", t.pool}, {"scores", scores}});
    if (console.json) continue;
    char text[160];
    std::snprintf(text, sizeof text, "%s: %d tasks, pools of %.0f programs", t.split.c_str(),
                  t.tasks, t.pool);
    console.out << text << "\n" << "method                 top-1  top-5 top-10  least\n";
    for (const RankScore& s : t.scores) {
      std::snprintf(text, sizeof text, "%-20.20s   %.3f  %.3f  %.3f  %.3f", s.method.c_str(),
                    s.top1, s.top5, s.top10, s.least);
      console.out << text << "\n";
    }
  }
  if (console.json) write_json(console, Json::Object{{"set", set.path()}, {"tables", list}});
  return kExitOk;
}

}  // namespace tw
