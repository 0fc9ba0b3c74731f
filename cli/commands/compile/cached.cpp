// tilewright compile: takes builds from the cache, and puts them there.
#include "cli/commands/compile/job.h"

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <string_view>

#include "cli/progress.h"
#include "driver/tune/lock_file.h"
#include "frontend/mapped_file.h"
#include "packager/output_file.h"

namespace tw {
namespace {

// Flags that say where files lie, what is held against the library, how the compile runs or what
// it shows. All others may change the library's bytes.
constexpr std::string_view kBesideTheBytes[] = {
    "MODEL",  "--target",     "--output",      "--header",     "--inputs",
    "--jobs", "--depfile",    "--budget",      "--junit",      "--cache",
    "--json", "--cache-size", "--with-runner", "--verify-each"};

// The words of the command line that may change the library's bytes, beside the contents of files
std::vector<std::string> words_of(const CompileArgs& args) {
  std::vector<std::string> words;
  for (const GivenFlag& flag : args.flags()) {
    if (std::ranges::find(kBesideTheBytes, flag.name) != std::end(kBesideTheBytes)) continue;
    words.push_back(flag.name);
    words.insert(words.end(), flag.values.begin(), flag.values.end());
  }
  return words;
}

}  // namespace

// The reason why a build cannot come from the cache; "": it can. Logs change while they are read,
// and the compilers of devices are not in the key.
std::string why_not_cached(const Job& job) {
  const CompileArgs& args = job.args;
  if (!args.tune.empty() || !args.log.empty()) return "--tune and --log take what was measured";
  if (args.predicted) return "predictors choose its schedules";
  if (!job.target.devices.empty()) return "the target has a device";
  if (!args.report.empty()) return "--report tells of the compile";
  if (job.limit) return "its accuracy is measured";
  if (args.verify.on) return "--verify runs it";
  if (!args.weights.empty()) return "--weights writes a third file";
  if (is_text(job.options.emit) || !args.dump_dir.empty() || !args.print_after.empty() ||
      args.print_changed || args.time_passes)
    return "texts are printed on the way";
  return "";
}

Error find_build_key(Job& job) {
  const CompileArgs& args = job.args;
  if (args.untrusted.on) return Error::success();
  TW_ASSIGN(job.cache, args.cache.open());
  if (job.cache) {
    TW_ASSIGN(std::string compiler, compiler_identity());
    job.objects = std::make_unique<CachedObjects>(*job.cache, std::move(compiler));
    job.options.store = job.objects.get();
  }
  if (!job.cache || !why_not_cached(job).empty()) return Error::success();
  FileRoles files;
  files.reads_model(args.model);
  files.reads("the lock beside the model", lock_beside(args.model));
  const auto name_of_file = [](const std::string& path) {
    return std::filesystem::path(path).filename().string();
  };
  std::vector<std::string> words = words_of(args);
  for (const std::string& file : {args.model, job.options.output, header_path(job.options)})
    words.push_back(name_of_file(file));
  words.push_back(job.options.given.forms.yaml);
  TW_ASSIGN(job.key, build_key(job.target, files, words));
  return Error::success();
}

Expected<int> finish_cached_library(Job& job, const CachedBuild& build, Console& console) {
  const auto& [library, header, runner] = job.places;
  TW_TRY(write_file(job.options.output, build.library, job.options.emit == Emit::so));
  TW_TRY(write_file(job.options.header, build.header));
  if (!console.json) console.err << build.remarks;
  TW_ASSIGN(const Json stored, parse_json(build.report, "the cache's entry " + job.key));
  Json::Object report{{"output", library}, {"header", header}, {"cached", true}};
  if (stored.object())
    for (const auto& [name, value] : *stored.object())
      if (name != "output" && name != "header") report.push_back({name, value});
  return finish_library(
      job, std::move(report),
      library + ": " + format_bytes(build.library.size()) + ", from the cache\n" + header + "\n",
      console);
}

// Compile only warns of an error here: a cache that cannot be written is no reason to fail.
Error add_to_build_cache(const Job& job, const Json::Object& report, const std::string& remarks) {
  TW_ASSIGN(const std::shared_ptr<const MappedFile> library, MappedFile::open(job.options.output));
  TW_ASSIGN(const std::shared_ptr<const MappedFile> header,
            MappedFile::open(header_path(job.options)));
  return job.cache->add(
      job.key, {std::string(library->text()), std::string(header->text()), dump(report), remarks});
}

}  // namespace tw
