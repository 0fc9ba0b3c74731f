// tilewright dataset ACTION SET: measured programs to learn from.
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <ostream>

#include "cli/commands/commands.h"
#include "cli/interrupts.h"
#include "cli/progress.h"
#include "cli/targets.h"
#include "cli/tune_flags.h"
#include "driver/dataset/exchange.h"
#include "driver/dataset/make.h"
#include "driver/dataset/program_features.h"
#include "driver/dataset/rank.h"
#include "driver/dataset/report.h"
#include "driver/dataset/sample.h"
#include "driver/dataset/tasks.h"
#include "support/parallel.h"

namespace tw {
namespace {

struct DatasetArgs {
  std::string action, set, folder, networks, time, worker, features;
  double share = 1;
  int of_platform = 1, count = 10000;
  std::vector<std::string> platforms, lowered_for = {"x86-64-v4", "x86-64-v3"};
  // Of test: the TVM paper's five networks, and a transformer and a network of other shapes
  std::vector<std::string> test = {"resnet", "mobilenet", "lstm", "dqn", "dcgan", "bert", "unet"},
                           validation = {"densenet", "vit", "gpt"};
  int from_networks = 240, sampled = 240, programs = 160, test_programs = 512;
  std::optional<uint64_t> seed;
};

std::vector<std::string> onnx_files(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(folder, code))
    if (entry.path().extension() == ".onnx") out.push_back(entry.path().string());
  std::ranges::sort(out);
  return out;
}

SplitRule rule_of(const DatasetArgs& args) {
  return {{args.test.begin(), args.test.end()}, {args.validation.begin(), args.validation.end()}};
}

Json splits_json(const std::vector<int>& counts) {
  Json::Object out;
  for (size_t i = 0; i < counts.size(); ++i)
    out.push_back({split_name(static_cast<Split>(i)), counts[i]});
  return out;
}

Expected<int> measure(const DatasetArgs& args, DataSet& set, Console& console) {
  MakeRequest request;
  request.target_folders = config_dirs();
  std::vector<std::string> platforms = args.platforms;
  if (platforms.empty()) platforms = usual_platforms(request.target_folders);
  for (const std::string& text : platforms) {
    TW_ASSIGN(const PlatformChoice choice, parse_platform(text));
    request.platforms.push_back(choice);
  }
  if (!args.time.empty()) {
    request.seconds = seconds_from_text(args.time);
    if (request.seconds <= 0)
      return make_error(DiagCode::invalid_argument, "--time '{0}' is no time like 90s, 20m or 1.5h",
                        args.time);
  }
  request.worker = args.worker;
  if (!args.worker.empty() && args.platforms.empty())
    return make_error(DiagCode::invalid_argument,
                      "--worker measures elsewhere: --platform says what its machine is");
  request.for_training = args.programs, request.for_test = args.test_programs;
  request.jobs = threads_or_all(0);
  request.seed = args.seed.value_or(1);
  Interrupts interrupts;
  request.stop = &interrupts.asked();
  Progress progress(console);
  progress.begin("measure");
  request.watch = [&](const std::string& text) { progress.detail(text); };
  TW_ASSIGN(const MakeOutcome out, make_labels(set, request));
  progress.end();
  if (console.json) {
    write_json(console, Json::Object{{"set", set.path()},
                                     {"labels", out.labels},
                                     {"again", out.again},
                                     {"tasks", out.tasks},
                                     {"left", out.left},
                                     {"seconds", out.seconds},
                                     {"failures", json_array(out.failures)}});
    return kExitOk;
  }
  char text[160];
  std::snprintf(text, sizeof text,
                "%lld labels and %lld again in %s: %.1f a second; %d tasks done, %d left",
                static_cast<long long>(out.labels), static_cast<long long>(out.again),
                format_seconds(out.seconds).c_str(),
                static_cast<double>(out.labels + out.again) / std::max(out.seconds, 1e-9),
                out.tasks, out.left);
  console.out << set.path() << ": " << text << "\n";
  for (const std::string& failure : out.failures) console.out << "  left out: " << failure << "\n";
  return kExitOk;
}

Expected<int> make(const DatasetArgs& args, DataSet& set, Console& console) {
  TaskRequest request;
  request.networks = onnx_files(args.networks);
  if (!args.networks.empty() && request.networks.empty())
    return make_error(DiagCode::io, "there is no ONNX file in '{0}'", args.networks);
  request.lowered_for = args.lowered_for, request.target_folders = config_dirs();
  request.from_networks = args.from_networks, request.sampled = args.sampled;
  request.rule = rule_of(args), request.seed = args.seed.value_or(1);
  Progress progress(console);
  progress.begin("tasks");
  request.watch = [&](const std::string& text) { progress.detail(text); };
  if (!request.networks.empty()) {
    TW_ASSIGN(const TaskOutcome out, add_tasks(set, request));
    progress.end();
    if (!console.json) {
      console.out << set.path() << ": " << out.from_networks << " tasks of networks and "
                  << out.sampled << " sampled ones are new, " << out.known << " were there\n";
      for (const std::string& skipped : out.skipped)
        console.out << "  left out: " << skipped << "\n";
    }
  }
  progress.end();
  return measure(args, set, console);
}

Expected<int> split(const DatasetArgs& args, DataSet& set, Console& console) {
  TW_ASSIGN(const std::vector<int> counts, mark_splits(set, rule_of(args)));
  if (console.json) {
    write_json(console, Json::Object{{"set", set.path()}, {"tasks", splits_json(counts)}});
    return kExitOk;
  }
  console.out << set.path() << ":";
  for (size_t i = 0; i < counts.size(); ++i)
    console.out << (i ? ", " : " ") << counts[i] << " " << split_name(static_cast<Split>(i));
  console.out << "\n";
  return kExitOk;
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

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

Expected<int> stat(const DatasetArgs&, DataSet& set, Console& console) {
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

Expected<int> check(const DatasetArgs& args, DataSet& set, Console& console) {
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

Expected<int> rank(const DatasetArgs& args, DataSet& set, Console& console) {
  RankRequest request;
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

Json layers_json(const std::vector<Layer>& layers) {
  Json::Array list;
  for (const Layer& layer : layers)
    list.push_back(Json::Object{{"kind", layer_kind_name(layer.kind)},
                                {"values", json_array(layer.values)},
                                {"flops", flops_of(layer)}});
  return list;
}

Expected<int> sample(const DatasetArgs& args, DataSet& set, Console& console) {
  TW_ASSIGN(const Sampled s, sample_layers(set, args.count, args.seed.value_or(1)));
  if (console.json) {
    write_json(console, Json::Object{{"set", set.path()},
                                     {"possible", s.possible},
                                     {"fresh", s.fresh},
                                     {"fresh_sizes", s.fresh_sizes},
                                     {"different", s.different},
                                     {"table", layers_json(s.table)},
                                     {"drawn", layers_json(s.drawn)}});
    return kExitOk;
  }
  const auto drawn = static_cast<double>(std::max<size_t>(1, s.drawn.size())),
             possible = static_cast<double>(std::max(1, s.possible));
  console.out << s.drawn.size() << " layers drawn from " << s.table.size() << ": "
              << percent(s.possible / drawn) << " are possible\n"
              << percent(s.fresh / possible) << " of these are in no network, "
              << percent(s.fresh_sizes / possible) << " have a size that none has, "
              << percent(s.different / possible) << " are different from each other\n";
  return kExitOk;
}

Json to_json(const ExchangeCounts& c) {
  return Json::Object{
      {"tasks", c.tasks}, {"programs", c.programs}, {"labels", c.labels}, {"bytes", c.bytes}};
}
void tell(const ExchangeCounts& c, const DatasetArgs& args, Console& console) {
  if (console.json)
    write_json(console,
               Json::Object{{"set", args.set}, {"folder", args.folder}, {"holds", to_json(c)}});
  else
    console.out << args.folder << ": " << c.tasks << " tasks, " << c.programs << " programs, "
                << c.labels << " labels, " << format_bytes(c.bytes) << "\n";
}

Error needs_folder(const DatasetArgs& args) {
  return args.folder.empty() ? make_error(DiagCode::invalid_argument,
                                          "dataset {0} takes a folder behind the set", args.action)
                             : Error::success();
}
Expected<int> export_dataset(const DatasetArgs& args, DataSet& set, Console& console) {
  TW_TRY(needs_folder(args));
  TW_ASSIGN(const ExchangeCounts counts, export_set(set, args.folder));
  tell(counts, args, console);
  return kExitOk;
}
Expected<int> import_dataset(const DatasetArgs& args, DataSet& set, Console& console) {
  TW_TRY(needs_folder(args));
  TW_ASSIGN(const ExchangeCounts counts, import_set(set, args.folder));
  tell(counts, args, console);
  return kExitOk;
}

Expected<int> write_feature_files(const DatasetArgs& args, DataSet& set, Console& console) {
  TW_TRY(needs_folder(args));
  const std::optional<FeatureFile> kind = feature_file_from_name(args.features);
  if (!kind)
    return make_error(DiagCode::invalid_argument,
                      "dataset features takes --as steps, loops, one-shot or task");
  Progress progress(console);
  progress.begin("features");
  TW_ASSIGN(const FeatureCounts counts,
            write_features(set, {*kind, args.folder, config_dirs(), threads_or_all(0),
                                 [&](const std::string& text) { progress.detail(text); }}));
  progress.end();
  if (console.json)
    write_json(console, Json::Object{{"set", args.set},
                                     {"folder", args.folder},
                                     {"features", args.features},
                                     {"programs", counts.programs},
                                     {"rows", counts.rows},
                                     {"columns", counts.columns}});
  else
    console.out << args.folder << ": " << counts.programs << " programs, " << counts.rows
                << " rows of " << counts.columns << " columns\n";
  return kExitOk;
}

Expected<int> show_program(const DatasetArgs& args, DataSet& set, Console& console) {
  const bool number = !args.folder.empty() && args.folder.size() < 20 &&
                      args.folder.find_first_not_of("0123456789") == std::string::npos;
  if (!number)
    return make_error(DiagCode::invalid_argument, "dataset show takes a program's number");
  TW_ASSIGN(const DataSet::Found found, set.program(std::stoll(args.folder)));
  TW_ASSIGN(const LearningTask task, set.task(found.task));
  if (!console.json) console.out << task.text << task.kernel_text << found.program.schedule;
  else
    write_json(console, Json::Object{{"set", set.path()},
                                     {"program", found.program.id},
                                     {"source", source_name(found.program.source)},
                                     {"task", task.text},
                                     {"kernel", task.kernel_text},
                                     {"schedule", found.program.schedule}});
  return kExitOk;
}

struct DatasetAction {
  const char* name;
  sql::Mode mode;
  Expected<int> (*run)(const DatasetArgs&, DataSet&, Console&);
};
constexpr std::array<DatasetAction, 11> kDatasetActions = {{
    {"make", sql::Mode::write, make},
    {"resume", sql::Mode::write, measure},
    {"split", sql::Mode::write, split},
    {"stat", sql::Mode::read, stat},
    {"check", sql::Mode::read, check},
    {"rank", sql::Mode::read, rank},
    {"features", sql::Mode::read, write_feature_files},
    {"show", sql::Mode::read, show_program},
    {"sample", sql::Mode::read, sample},
    {"export", sql::Mode::read, export_dataset},
    {"import", sql::Mode::write, import_dataset},
}};

Expected<int> dataset_command(const DatasetArgs& args, Console& console) {
  const auto action = std::ranges::find_if(
      kDatasetActions, [&](const DatasetAction& a) { return args.action == a.name; });
  if (action == kDatasetActions.end())
    return make_error(
        DiagCode::invalid_argument,
        "dataset '{0}': one of make, resume, stat, check, rank, features, split, show, "
        "sample, export, import",
        args.action);
  if (args.action != "make" && args.action != "import" && !std::filesystem::exists(args.set))
    return make_error(DiagCode::io, "there is no data set '{0}'", args.set);
  TW_ASSIGN(DataSet set, DataSet::open(args.set, action->mode));
  return action->run(args, set, console);
}

}  // namespace

CommandRun define_dataset(Flags& flags) {
  auto args = std::make_shared<DatasetArgs>();
  flags.argument("ACTION", args->action,
                 "make: adds tasks of networks and tasks like them, and measures programs of all; "
                 "resume: measures what is missing; stat: how many labels of what, and how sure "
                 "they are; check: "
                 "measures some again; rank: how well a model that learns from training ranks the "
                 "others; features FOLDER: what predictors learn from, as arrays of numpy; split: "
                 "marks training, validation and test; show ID: a program; sample: "
                 "draws layers from what its networks have, and says how many are "
                 "new; "
                 "export FOLDER, import FOLDER: as compressed lines of JSON");
  flags.argument("SET", args->set, "The data set, a file");
  flags.argument("FOLDER", args->folder,
                 "Of export, import and features; of show: a program's number", false);
  flags.text("--networks", args->networks, "FOLDER",
             "Of make: ONNX files whose layers become tasks");
  flags.integer("--tasks", args->from_networks, "Of make: so many tasks of networks");
  flags.integer("--sampled", args->sampled, "Of make: so many tasks drawn from what networks have");
  flags.integer("--programs", args->programs, "Programs of a task of training", 8);
  flags.integer("--test-programs", args->test_programs, "Programs of a task of test", 8);
  flags.repeated("--platform", args->platforms, "TARGET[:THREADS]",
                 "What to measure for; default: what this machine can be");
  flags.text("--worker", args->worker, "DIR",
             "Another machine measures: the folder that its tilewright-worker serves");
  flags.comma_list("--lower-for", args->lowered_for, "TARGETS",
                   "Of make: what kernels are lowered for, in turns");
  flags.comma_list("--test", args->test, "FAMILIES",
                   "Families of networks that training never sees");
  flags.comma_list("--validation", args->validation, "FAMILIES", "Those that only end training");
  flags.integer("--of", args->of_platform, "Of rank: the number of the platform, as stat says it",
                1);
  flags.text("--as", args->features, "KIND", "Of features: steps, loops, one-shot or task");
  flags.integer("--count", args->count, "Of sample: so many layers", 1);
  flags.number("--share", args->share, "P", "Of check: percent of the programs");
  flags.text("--time", args->time, "T", "Ends after so long: 20m; default: when all is measured");
  flags.seed("--seed", args->seed, "Of the order of tasks and of what is sampled");
  return [args](Console& console) { return dataset_command(*args, console); };
}

}  // namespace tw
