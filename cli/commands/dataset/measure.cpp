// tilewright dataset make, resume, extend and split: add tasks and labels, and split tasks into
// training and test.
#include "cli/commands/dataset/actions.h"

#include <algorithm>
#include <filesystem>
#include <ostream>

#include "cli/file_roles.h"
#include "cli/interrupts.h"
#include "cli/progress.h"
#include "cli/targets.h"
#include "cli/tune_flags.h"
#include "driver/dataset/make.h"
#include "driver/dataset/tasks.h"
#include "driver/tune/predictor_files.h"
#include "support/parallel.h"

namespace tw {
namespace {

std::vector<std::string> onnx_files(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(folder, code))
    if (entry.path().extension() == ".onnx") out.push_back(entry.path().string());
  std::ranges::sort(out);
  return out;
}

}  // namespace

SplitRule rule_of(const DatasetArgs& args) {
  return {{args.test.begin(), args.test.end()}, {args.validation.begin(), args.validation.end()}};
}

Json splits_json(const std::vector<int>& counts) {
  Json::Object out;
  for (size_t i = 0; i < counts.size(); ++i)
    out.push_back({split_name(static_cast<Split>(i)), counts[i]});
  return out;
}

namespace {

Expected<MakeRequest> request_of(const DatasetArgs& args) {
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
  for (const std::string& name : args.splits) {
    const std::optional<Split> split = split_from_name(name);
    if (!split)
      return make_error(DiagCode::invalid_argument,
                        "--split '{0}': train, validation, test or near", name);
    request.splits.push_back(*split);
  }
  request.worker = args.worker;
  if (!args.worker.empty() && args.platforms.empty())
    return make_error(DiagCode::invalid_argument,
                      "--worker measures elsewhere: --platform says what its machine is");
  request.for_training = args.programs, request.for_test = args.test_programs;
  request.jobs = threads_or_all(0);
  request.seed = args.seed.value_or(1);
  return request;
}

Expected<int> fill(MakeRequest request, DataSet& set, Console& console) {
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

}  // namespace

Expected<int> measure_dataset(const DatasetArgs& args, DataSet& set, Console& console) {
  TW_ASSIGN(MakeRequest request, request_of(args));
  return fill(std::move(request), set, console);
}

// By default, test tasks stay as they are: they keep the pools that methods are compared by.
Expected<int> extend_dataset(const DatasetArgs& args, DataSet& set, Console& console) {
  TW_ASSIGN(MakeRequest request, request_of(args));
  if (request.splits.empty()) request.splits = {Split::train, Split::validation};
  TW_ASSIGN(request.predictors, load_predictors(kBestPredictor, predictor_dirs()));
  request.extended_by = args.extended_by;
  return fill(std::move(request), set, console);
}

namespace {

Error add_by_algorithms(const DatasetArgs& args, DataSet& set, Console& console) {
  if (args.algorithms.empty())
    return args.layers_of.empty()
               ? Error::success()
               : make_error(DiagCode::invalid_argument,
                            "--layers-of names a set whose layers --algorithms computes");
  std::vector<Algorithm> algorithms;
  for (const std::string& name : args.algorithms) {
    const std::optional<Algorithm> algorithm = algorithm_from_name(name);
    if (!algorithm || *algorithm == Algorithm::direct)
      return make_error(DiagCode::invalid_argument,
                        "--algorithms '{0}': winograd_f2, winograd_f4, winograd_f6 or strassen",
                        name);
    algorithms.push_back(*algorithm);
  }
  std::optional<DataSet> other;
  if (!args.layers_of.empty()) {
    if (!std::filesystem::exists(args.layers_of))
      return make_error(DiagCode::io, "there is no data set '{0}'", args.layers_of);
    TW_ASSIGN(other, DataSet::open(args.layers_of, sql::Mode::read));
  }
  TW_ASSIGN(const int added, add_algorithms(set, other ? *other : set, algorithms, config_dirs()));
  if (!console.json)
    console.out << set.path() << ": " << added << " tasks by other algorithms are new\n";
  return Error::success();
}

}  // namespace

Expected<int> make_dataset(const DatasetArgs& args, DataSet& set, Console& console) {
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
    FileRoles files;
    for (const std::string& network : request.networks) files.reads_model(network);
    TW_ASSIGN(const TaskOutcome out, add_tasks(set, request));
    TW_TRY(files.models_are_unchanged());
    progress.end();
    if (!console.json) {
      console.out << set.path() << ": " << out.from_networks << " tasks of networks and "
                  << out.sampled << " sampled ones are new, " << out.known << " were there\n";
      for (const std::string& skipped : out.skipped)
        console.out << "  left out: " << skipped << "\n";
    }
  }
  TW_TRY(add_by_algorithms(args, set, console));
  progress.end();
  return measure_dataset(args, set, console);
}

Expected<int> split_dataset(const DatasetArgs& args, DataSet& set, Console& console) {
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

}  // namespace tw
