// tilewright dataset export, import, features and show: exchange a set with others.
#include "cli/commands/dataset/actions.h"

#include <ostream>

#include "cli/progress.h"
#include "cli/targets.h"
#include "driver/dataset/exchange.h"
#include "driver/dataset/program_features.h"
#include "support/parallel.h"

namespace tw {
namespace {

Json to_json(const ExchangeCounts& c) {
  Json::Object out{
      {"tasks", c.tasks}, {"programs", c.programs}, {"labels", c.labels}, {"bytes", c.bytes}};
  if (c.converted)
    out.push_back({"converted", Json::Object{{"tasks", c.converted->tasks},
                                             {"programs", c.converted->programs},
                                             {"lost_tasks", c.converted->lost_tasks},
                                             {"lost_programs", c.converted->lost_programs}}});
  return out;
}
void tell(const ExchangeCounts& c, const DatasetArgs& args, Console& console) {
  if (console.json)
    write_json(console,
               Json::Object{{"set", args.set}, {"folder", args.folder}, {"holds", to_json(c)}});
  else
    console.out << args.folder << ": " << c.tasks << " tasks, " << c.programs << " programs, "
                << c.labels << " labels, " << format_bytes(c.bytes) << "\n";
  if (!c.converted || console.json) return;
  console.out << "its schedules were of an older language: " << c.converted->tasks << " tasks and "
              << c.converted->programs << " programs are converted, " << c.converted->lost_tasks
              << " tasks and " << c.converted->lost_programs
              << " programs more have no equal in this one\n";
  for (const std::string& reason : c.converted->reasons) console.err << "lost: " << reason << "\n";
}

Error needs_folder(const DatasetArgs& args) {
  return args.folder.empty() ? make_error(DiagCode::invalid_argument,
                                          "dataset {0} takes a folder behind the set", args.action)
                             : Error::success();
}

}  // namespace

Expected<int> export_dataset(const DatasetArgs& args, DataSet& set, Console& console) {
  TW_TRY(needs_folder(args));
  TW_ASSIGN(const ExchangeCounts counts, export_set(set, args.folder));
  tell(counts, args, console);
  return kExitOk;
}
Expected<int> import_dataset(const DatasetArgs& args, DataSet& set, Console& console) {
  TW_TRY(needs_folder(args));
  TW_ASSIGN(const ExchangeCounts counts,
            import_set(set, args.folder, {config_dirs(), threads_or_all(0)}));
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

}  // namespace tw
