#include "driver/dataset/program_features.h"

#include <llvm/Support/FileSystem.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include "autotune/features/features.h"
#include "driver/dataset/set_programs.h"
#include "ir/graph/tensor.h"
#include "packager/output_file.h"
#include "support/json.h"
#include "support/parallel.h"

namespace tw {
namespace {

constexpr std::array<const char*, kFeatureFileCount> kNames = {"steps", "loops", "one-shot",
                                                               "task"};

std::vector<std::string> columns_of(FeatureFile kind) {
  switch (kind) {
    case FeatureFile::steps: return step_feature_names();
    case FeatureFile::loops: return loop_feature_names();
    case FeatureFile::one_shot: return one_shot_feature_names();
    case FeatureFile::task: return task_feature_names();
  }
  TW_UNREACHABLE("a kind of features");
}

Expected<std::vector<FeatureRow>> rows_of(FeatureFile kind, const Kernel& lowered,
                                          const LearningProgram& program, const Target& target) {
  if (kind == FeatureFile::task) return std::vector<FeatureRow>{task_row(lowered)};
  TW_ASSIGN(const Schedule schedule, parse_schedule(program.schedule));
  if (kind == FeatureFile::steps) return step_rows(schedule);
  TW_ASSIGN(const RunKernel scheduled, apply_to_run(lowered, schedule, &target));
  if (kind == FeatureFile::loops) return loop_rows(scheduled.kernel);
  return std::vector<FeatureRow>{one_shot_row(lowered, schedule, scheduled.kernel)};
}

template <class T>
Error write_values(const std::string& path, DType dtype, const std::vector<T>& values,
                   std::vector<int64_t> shape) {
  Tensor tensor = Tensor::zeros(dtype, std::move(shape));
  std::memcpy(tensor.bytes.data(), values.data(), values.size() * sizeof(T));
  return write_npy(path, tensor);
}

Error write_hardware(DataSet& set, NamedTargets& targets, const std::string& folder) {
  TW_ASSIGN(const std::vector<Platform> platforms, set.platforms());
  const std::vector<std::string> names = hardware_feature_names();
  Json::Object all;
  std::set<std::string> known;  // the machine makes no difference here
  for (const Platform& p : platforms) {
    const std::string name = p.threads == 1 ? p.name : p.name + ":" + std::to_string(p.threads);
    if (!known.insert(name).second) continue;
    TW_ASSIGN(const Target* target, targets.find(p.name));
    const FeatureRow row = hardware_row(target->main_device(), p.threads);
    Json::Object one;
    for (size_t i = 0; i < row.size(); ++i) one.push_back({names[i], static_cast<double>(row[i])});
    all.push_back({name, std::move(one)});
  }
  return write_file(folder + "/hardware.json", dump(std::move(all)) + "\n");
}

struct Collected {
  std::vector<int64_t> ids, offsets = {0};
  std::vector<float> values;
};

Error add_task(const LearningTask& task, const std::vector<LearningProgram>& programs,
               const Target& target, const FeatureRequest& request, Collected& out) {
  TW_ASSIGN(const Kernel kernel, parse_kernel(task.kernel_text));
  std::vector<std::vector<FeatureRow>> rows(programs.size());
  TW_TRY(parallel_for(request.jobs, programs.size(), [&](size_t i) -> Error {
    if (auto made = rows_of(request.kind, kernel, programs[i], target.main_device()))
      rows[i] = std::move(*made);
    else llvm::consumeError(made.takeError());  // another version's step: it has no features here
    return Error::success();
  }));
  for (size_t i = 0; i < programs.size(); ++i) {
    if (rows[i].empty()) continue;
    out.ids.push_back(programs[i].id);
    out.offsets.push_back(out.offsets.back() + static_cast<int64_t>(rows[i].size()));
    for (const FeatureRow& row : rows[i])
      out.values.insert(out.values.end(), row.begin(), row.end());
  }
  return Error::success();
}

}  // namespace

const char* feature_file_name(FeatureFile kind) { return kNames[static_cast<size_t>(kind)]; }
std::optional<FeatureFile> feature_file_from_name(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<FeatureFile>(found - kNames.begin());
}

Expected<FeatureCounts> write_features(DataSet& set, const FeatureRequest& request) {
  if (const std::error_code code = llvm::sys::fs::create_directories(request.folder))
    return make_error(DiagCode::io, "cannot make the folder '{0}': {1}", request.folder,
                      code.message());
  NamedTargets targets(request.target_folders);
  const std::vector<std::string> columns = columns_of(request.kind);
  TW_ASSIGN(const std::vector<LearningTask> tasks, set.tasks());
  Collected all;
  for (const LearningTask& listed : tasks) {
    TW_ASSIGN(const std::vector<LearningProgram> programs, set.programs(listed.id));
    if (programs.empty()) continue;
    if (request.watch) request.watch(listed.name);
    TW_ASSIGN(const LearningTask task, set.task(listed.id));
    TW_ASSIGN(const Target* target, targets.find(task.lowered_for));
    TW_TRY(add_task(task, programs, *target, request, all));
  }
  const FeatureCounts counts{static_cast<int64_t>(all.ids.size()), all.offsets.back(),
                             static_cast<int64_t>(columns.size())};
  const std::string at = request.folder + "/";
  TW_TRY(write_values(at + "ids.npy", DType::i64, all.ids, {counts.programs}));
  TW_TRY(write_values(at + "offsets.npy", DType::i64, all.offsets, {counts.programs + 1}));
  TW_TRY(write_values(at + "values.npy", DType::f32, all.values, {counts.rows, counts.columns}));
  std::string names;
  for (const std::string& column : columns) names += column + "\n";
  TW_TRY(write_file(at + "columns.txt", names));
  TW_TRY(write_hardware(set, targets, request.folder));
  return counts;
}

}  // namespace tw
