// test_onnx: compiles and runs the ONNX backend suite in forked processes of this program
// (tests/onnx/README.md).
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <thread>

#include "tests/onnx/report.h"
#include "tests/onnx/run_case.h"

namespace tw::onnx_suite {
namespace {

struct Args {
  std::string cases = TW_ONNX_CASES, lists = TW_SOURCE_DIR "/tests/onnx", filter = "*",
              modes = "static,symbolic,constant", shard = "0/1";
  int jobs = static_cast<int>(std::max(1u, std::thread::hardware_concurrency())), reasons = 0,
      slowest = 0;
  double limit = 60;
  bool verbose = false, update = false, listed = false;
};

// Chooses by the name alone, so that a case stays in its shard.
bool in_shard(const Job& job, uint64_t index, uint64_t count) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : job.one->id + mode_name(job.mode))
    hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211u;
  return (hash >> 7) % count == index;
}

Expected<std::vector<Job>> choose(const std::vector<Case>& cases, const Args& args) {
  TW_ASSIGN(const std::set<Mode> modes, parse_modes(args.modes));
  char* end = nullptr;
  const uint64_t index = std::strtoull(args.shard.c_str(), &end, 10),
                 count = *end == '/' ? std::strtoull(end + 1, &end, 10) : 0;
  if (*end || index >= count)
    return make_error(DiagCode::invalid_argument, "--shard {0}: expected I/N with 0 <= I < N",
                      args.shard);
  std::vector<Job> jobs;
  for (Mode mode : modes)
    for (const Case& c : cases) {
      const Job job{&c, mode};
      const bool wanted = glob_matches(args.filter, c.id) ||
                          glob_matches(args.filter, c.id.substr(c.id.find('/') + 1));
      if (wanted && in_shard(job, index, count) && std::filesystem::exists(c.model(mode)))
        jobs.push_back(job);
    }
  return jobs;
}

// A folder that its destructor removes, in memory if the machine allows that.
class Folder {
 public:
  Folder() {
    path_ = (std::filesystem::exists("/dev/shm")
                 ? "/dev/shm"
                 : std::filesystem::temp_directory_path().string()) +
            "/tilewright-onnx-XXXXXX";
    TW_CHECK(mkdtemp(path_.data()), "no temporary folder");
  }
  Folder(const Folder&) = delete;
  ~Folder() {
    std::error_code none;
    std::filesystem::remove_all(path_, none);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::function<JobResult(size_t)> make_work(const std::vector<Job>& jobs,
                                           const std::string& folder) {
  auto runner = std::make_shared<CaseRunner>(folder);
  return [&jobs, runner](size_t i) {
    CaseTimes times;
    if (Error error = runner->run(*jobs[i].one, jobs[i].mode, times))
      return JobResult{false, 0, error_text(std::move(error))};
    return JobResult{
        true, 0,
        llvm::formatv(": compile {0:f1} ({1} ), load {2:f1}, run {3:f1}", times.compile * 1000,
                      times.stages, times.load * 1000, times.run * 1000)
            .str()};
  };
}

Expected<bool> run(const Args& args) {
  TW_ASSIGN(const std::vector<Case> cases, find_cases(args.cases));
  TW_ASSIGN(const Excluded excluded, Excluded::read(args.lists + "/excluded.txt"));
  TW_ASSIGN(const NotYet not_yet, NotYet::read(args.lists + "/not_yet.txt"));
  for (const std::string& glob : excluded.unused(cases))
    return make_error(DiagCode::invalid_argument, "excluded.txt: no case is called {0}", glob);
  TW_ASSIGN(const std::vector<Job> chosen, choose(cases, args));
  Report report(not_yet);
  std::vector<Job> jobs;
  for (const Job& job : chosen) {
    if (excluded.has(job.one->id, job.mode)) report.excluded(job);
    else if (!args.listed || not_yet.has(job.one->id, job.mode)) jobs.push_back(job);
  }
  Folder folder;
  WorkerOptions options;
  options.processes = args.jobs;
  options.limit = args.limit;
  run_jobs(
      jobs.size(), options, [&] { return make_work(jobs, folder.path()); },
      [&](size_t i, const JobResult& result) {
        report.add(jobs[i], result);
        if (args.verbose)
          std::cout << (result.passed ? "ok   " : "FAIL ") << jobs[i].one->id << " "
                    << mode_name(jobs[i].mode) << (result.passed ? "" : ": ") << result.text
                    << std::endl;
      });
  if (args.update) TW_TRY(report.updated().write(args.lists + "/not_yet.txt"));
  else if (!args.verbose && !args.reasons) report.print_failures(std::cout);
  if (args.reasons) report.print_reasons(std::cout, args.reasons);
  if (args.slowest) report.print_slowest(std::cout, args.slowest);
  report.print_counts(std::cout);
  return args.update || report.good();
}

}  // namespace
}  // namespace tw::onnx_suite

int main(int argc, char** argv) {
  tw::onnx_suite::Args args;
  CLI::App app(
      "Compiles and runs the ONNX backend suite; exit status 1 when a case fails that is on no "
      "list, or passes and is on one.");
  app.add_option("--cases", args.cases, "what tests/onnx/export.py wrote");
  app.add_option("--lists", args.lists, "the folder of excluded.txt and not_yet.txt");
  app.add_option("--filter", args.filter, "GLOB: KIND/CASE or CASE");
  app.add_option("--mode", args.modes, "static,symbolic,constant: some of them");
  app.add_option("--shard", args.shard, "I/N: every N-th run, chosen by name")
      ->envname("TW_ONNX_SHARD");
  app.add_option("--jobs", args.jobs, "processes at once")->check(CLI::PositiveNumber);
  app.add_option("--limit", args.limit, "seconds a case may take");
  app.add_option("--reasons", args.reasons,
                 "group the failures, those on the list too, with so many names each");
  app.add_option("--slowest", args.slowest, "show the slowest N");
  app.add_flag("--verbose", args.verbose, "a line a run, with times or why it fails");
  app.add_flag("--listed", args.listed, "only what not_yet.txt names");
  app.add_flag("--update", args.update, "write not_yet.txt anew from this run");
  CLI11_PARSE(app, argc, argv);
  auto good = tw::onnx_suite::run(args);
  if (good) return *good ? 0 : 1;
  std::cerr << tw::error_text(good.takeError()) << "\n";
  return 2;
}
