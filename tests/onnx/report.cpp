#include "tests/onnx/report.h"

#include <algorithm>
#include <cctype>
#include <ostream>

namespace tw::onnx_suite {
namespace {

void print_line(std::ostream& out, const Counts& c) {
  out << c.passed << " passed, " << c.failed << " failed, " << c.listed << " on the list, "
      << c.excluded << " excluded";
  if (c.stale) out << ", " << c.stale << " to be taken off the list";
  out << "\n";
}

}  // namespace

std::string reason_of(const std::string& text) {
  std::string line = text.substr(0, text.find('\n'));
  if (const size_t file = line.find(".onnx: "); file != std::string::npos) line.erase(0, file + 7);
  if (const size_t node = line.rfind(" (node"); node != std::string::npos) line.resize(node);
  std::string reason;
  for (size_t i = 0; i < line.size(); ++i) {
    const bool number = std::isdigit(static_cast<unsigned char>(line[i])) &&
                        (i == 0 || (!std::isalnum(static_cast<unsigned char>(line[i - 1])) &&
                                    line[i - 1] != '_'));
    const size_t quote = line[i] == '\'' ? line.find('\'', i + 1) : std::string::npos;
    if (quote != std::string::npos) {
      reason += "'…'";
      i = quote;
    } else if (number) {
      reason += "N";
      while (i + 1 < line.size() &&
             (std::isdigit(static_cast<unsigned char>(line[i + 1])) || line[i + 1] == '.'))
        ++i;
    } else {
      reason += line[i];
    }
  }
  return reason;
}

void Report::add(const Job& job, const JobResult& result) {
  const bool listed = not_yet_.has(job.one->id, job.mode);
  Counts& counts = counts_of(job);
  times_.emplace_back(result.seconds,
                      job.one->id + " " + mode_name(job.mode) +
                          result.text.substr(0, result.passed ? std::string::npos : 0));
  if (result.passed) {
    ++(listed ? counts.stale : counts.passed);
    passed_.push_back(job);
  } else {
    ++(listed ? counts.listed : counts.failed);
    failures_.push_back({job, result.text});
  }
}

void Report::print_counts(std::ostream& out) const {
  for (const auto& [mode, kinds] : counts_) {
    Counts all;
    for (const auto& [kind, c] : kinds) {
      out << "  " << kind << " " << mode_name(mode) << ": ";
      print_line(out, c);
      all.passed += c.passed, all.failed += c.failed, all.listed += c.listed,
          all.excluded += c.excluded, all.stale += c.stale;
    }
    out << "onnx " << mode_name(mode) << ": ";
    print_line(out, all);
  }
}

void Report::print_failures(std::ostream& out) const {
  for (const Failure& f : failures_)
    if (!not_yet_.has(f.job.one->id, f.job.mode))
      out << "FAIL " << f.job.one->id << " " << mode_name(f.job.mode) << ": " << f.text << "\n";
  for (const Job& job : passed_)
    if (not_yet_.has(job.one->id, job.mode))
      out << "PASS " << job.one->id << " " << mode_name(job.mode)
          << ": take it off not_yet.txt (--update does)\n";
}

void Report::print_reasons(std::ostream& out, int names) const {
  std::map<std::string, std::set<std::string>> groups;
  for (const Failure& f : failures_) groups[reason_of(f.text)].insert(f.job.one->id);
  std::vector<std::pair<size_t, std::string>> order;
  for (const auto& [reason, ids] : groups) order.emplace_back(ids.size(), reason);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  for (const auto& [count, reason] : order) {
    out << count << "  " << reason << "\n     ";
    int left = names;
    for (const std::string& id : groups[reason])
      if (left-- > 0) out << " " << id;
    out << "\n";
  }
}

void Report::print_slowest(std::ostream& out, int count) const {
  std::vector<std::pair<double, std::string>> times = times_;
  std::sort(times.rbegin(), times.rend());
  double all = 0;
  for (const auto& [seconds, what] : times) all += seconds;
  for (int i = 0; i < count && i < static_cast<int>(times.size()); ++i)
    out << llvm::formatv("{0,8:f1} ms  {1}", times[static_cast<size_t>(i)].first * 1000,
                         times[static_cast<size_t>(i)].second)
               .str()
        << "\n";
  if (!times.empty())
    out << llvm::formatv("{0} runs, {1:f1} ms each in the mean, {2:f1} ms in the median",
                         times.size(), all * 1000 / static_cast<double>(times.size()),
                         times[times.size() / 2].first * 1000)
               .str()
        << "\n";
}

bool Report::good() const {
  return std::all_of(counts_.begin(), counts_.end(), [](const auto& mode) {
    return std::all_of(mode.second.begin(), mode.second.end(), [](const auto& kind) {
      return kind.second.failed == 0 && kind.second.stale == 0;
    });
  });
}

NotYet Report::updated() const {
  NotYet list = not_yet_;
  for (const Job& job : passed_) {
    const auto found = list.cases.find(job.one->id);
    if (found != list.cases.end() && found->second.modes.erase(job.mode) &&
        found->second.modes.empty())
      list.cases.erase(found);
  }
  for (const Failure& f : failures_) {
    NotYet::Entry& entry = list.cases[f.job.one->id];
    entry.modes.insert(f.job.mode);
    entry.reason = reason_of(f.text);
  }
  return list;
}

}  // namespace tw::onnx_suite
