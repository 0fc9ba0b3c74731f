// What a run of the suite says: a line a kind and way, failures by reason, and whether the lists
// are still true.
#pragma once
#include <iosfwd>

#include "tests/onnx/cases.h"
#include "tests/onnx/workers.h"

namespace tw::onnx_suite {

struct Job {
  const Case* one;
  Mode mode;
};

// stale: passed, but on the list
struct Counts {
  int passed = 0, failed = 0, listed = 0, excluded = 0, stale = 0;
};

class Report {
 public:
  Report(const NotYet& not_yet) : not_yet_(not_yet) {}
  void excluded(const Job& job) { ++counts_of(job).excluded; }
  void add(const Job& job, const JobResult& result);

  void print_counts(std::ostream& out) const;
  // With what to do; those on the list are left out
  void print_failures(std::ostream& out) const;
  // All failures, grouped by their text, the largest group first
  void print_reasons(std::ostream& out, int names) const;
  void print_slowest(std::ostream& out, int count) const;
  bool good() const;
  NotYet updated() const;  // the list with what this run saw

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

// The text of a failure without what differs from case to case: names in quotes, numbers, the file.
std::string reason_of(const std::string& text);

}  // namespace tw::onnx_suite
