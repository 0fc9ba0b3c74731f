// The report of a run of the suite: counts for each kind and mode, failures by reason, and whether
// the lists still hold.
#pragma once
#include <iosfwd>

#include "tests/onnx/cases.h"
#include "tests/onnx/workers.h"

namespace tw::onnx_suite {

struct Job {
  const Case* one;
  Mode mode;
};

// listed: failed, and on the list of cases that do not pass yet; stale: passed, but on that list
struct Counts {
  int passed = 0, failed = 0, listed = 0, excluded = 0, stale = 0;
};

class Report {
 public:
  Report(const NotYet& not_yet) : not_yet_(not_yet) {}
  void excluded(const Job& job) { ++counts_of(job).excluded; }
  void add(const Job& job, const JobResult& result);

  void print_counts(std::ostream& out) const;
  // Prints failures that are not on the list, and listed cases that passed, with a remedy.
  void print_failures(std::ostream& out) const;
  // Prints all failures, grouped by their text, the largest group first.
  void print_reasons(std::ostream& out, int names) const;
  void print_slowest(std::ostream& out, int count) const;
  bool good() const;
  NotYet updated() const;  // the list, updated by this run

 private:
  struct Failure {
    Job job;
    std::string text;
  };
  Counts& counts_of(const Job& job) { return counts_[job.mode][job.one->kind()]; }

  const NotYet& not_yet_;
  std::map<Mode, std::map<std::string, Counts>> counts_;
  std::vector<Failure> failures_;
  std::vector<Job> passed_;
  std::vector<std::pair<double, std::string>> times_;
};

// Returns a failure's text without the parts that differ between cases: quoted names, numbers, the
// file.
std::string reason_of(const std::string& text);

}  // namespace tw::onnx_suite
