// tilewright dataset ACTION SET: makes and uses sets of measured programs to learn from.
#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/commands/dataset/actions.h"
#include "cli/flags.h"

namespace tw {
namespace {

struct DatasetAction {
  const char* name;
  sql::Mode mode;
  DatasetRun* run;
};
constexpr std::array<DatasetAction, 12> kDatasetActions = {{
    {"make", sql::Mode::write, make_dataset},
    {"resume", sql::Mode::write, measure_dataset},
    {"extend", sql::Mode::write, extend_dataset},
    {"split", sql::Mode::write, split_dataset},
    {"stat", sql::Mode::read, stat_dataset},
    {"check", sql::Mode::read, check_dataset},
    {"rank", sql::Mode::read, rank_dataset},
    {"features", sql::Mode::read, write_feature_files},
    {"show", sql::Mode::read, show_program},
    {"sample", sql::Mode::read, sample_dataset},
    {"export", sql::Mode::read, export_dataset},
    {"import", sql::Mode::write, import_dataset},
}};

Expected<int> dataset_command(const DatasetArgs& args, Console& console) {
  const auto action = std::ranges::find_if(
      kDatasetActions, [&](const DatasetAction& a) { return args.action == a.name; });
  if (action == kDatasetActions.end())
    return wrong_word(
        "dataset", args.action,
        "make, resume, extend, stat, check, rank, features, split, show, sample, export, import");
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
                 "resume: measures what is missing; extend: measures what the installed ranker "
                 "likes of tasks that are whole; stat: how many labels of what, and how sure "
                 "they are; check: "
                 "measures some again; rank: how well predictors, and a model that learns from "
                 "training, rank the others; features FOLDER: what predictors learn from, as "
                 "arrays of numpy; split: "
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
  flags.comma_list("--algorithms", args->algorithms, "NAMES",
                   "Of make: adds the set's layers by these as well (winograd_f2, winograd_f4, "
                   "winograd_f6, strassen)");
  flags.text("--layers-of", args->layers_of, "SET",
             "Of make with --algorithms: the layers of another set");
  flags.integer("--programs", args->programs, "Programs of a task of training", 8);
  flags.integer("--test-programs", args->test_programs, "Programs of a task of test", 8);
  flags.integer("--by", args->extended_by, "Of extend: so many programs more of each task", 1);
  flags.repeated("--platform", args->platforms, "TARGET[:THREADS]",
                 "What to measure for; default: what this machine can be");
  flags.comma_list("--split", args->splits, "SPLITS",
                   "What to measure: tasks of these splits alone (train, validation, test, near)");
  flags.text("--worker", args->worker, "DIR",
             "Another machine measures: the folder that its tilewright-worker serves");
  flags.comma_list("--lower-for", args->lowered_for, "TARGETS",
                   "Of make: whose schedules tasks get, in turns");
  flags.comma_list("--test", args->test, "FAMILIES",
                   "Families of networks that training never sees");
  flags.comma_list("--validation", args->validation, "FAMILIES", "Those that only end training");
  flags.integer("--of", args->of_platform, "Of rank: the number of the platform, as stat says it",
                1);
  flags.comma_list("--tuner", args->tuners, "NAMES",
                   "Of rank: these ways alone, of the installed predictors (ranker, one-shot, tlp, "
                   "mtl-tlp) and xgboost, which learns from training; default: all");
  flags.integer("--pool", args->most_ranked,
                "Of rank: programs of a task that are ranked; default: all", 1);
  flags.text("--as", args->features, "KIND", "Of features: steps, loops, one-shot or task");
  flags.integer("--count", args->count, "Of sample: so many layers", 1);
  flags.number("--share", args->share, "P", "Of check: percent of the programs");
  flags.text("--time", args->time, "T", "Ends after so long: 20m; default: when all is measured");
  flags.seed("--seed", args->seed, "Of the order of tasks and of what is sampled");
  return [args](Console& console) { return dataset_command(*args, console); };
}

}  // namespace tw
