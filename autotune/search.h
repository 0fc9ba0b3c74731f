// The types that the parts of a search share: candidates, cost models, explorers. Everything is
// deterministic for a seed.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "autotune/record.h"
#include "autotune/space.h"
#include "ir/schedule/constant_stages.h"

namespace tw {

// A candidate, as a cost model sees it
struct Candidate {
  // Sketch -1: the candidate comes from a record or another task, and not from the space
  Point point;
  Schedule schedule;
  std::shared_ptr<const RunKernel> run;  // scheduled
  int variant = 0;  // variant of the task, whose lowered kernel the schedule rewrites
};
inline bool in_space(const Point& point) { return point.sketch >= 0; }

// Makes the candidate of a point. Error: the point is illegal, which is common.
using MakeCandidate = std::function<Expected<Candidate>(const Point&)>;

// Measurements of one task. Times of different tasks are never compared.
struct MeasuredSet {
  std::vector<Candidate> candidates;
  std::vector<double> seconds;  // infinite: failed
};

class CostModel {  // a higher score is faster
 public:
  virtual ~CostModel() = default;
  // Learns from all candidates of the task so far; seconds are infinite for failures.
  virtual void fit(std::span<const Candidate> candidates, std::span<const double> seconds) = 0;
  virtual std::vector<double> score(std::span<const Candidate> candidates) = 0;
  // Learns from similar tasks, before the first fit. True: it can score by that.
  virtual bool transfer(std::span<const MeasuredSet>) { return false; }
  // True when the point alone is enough; the rest of the candidate may then be empty.
  virtual bool knows(const Point&) const { return false; }
};

class Explorer {  // proposes points to measure, and learns their times
 public:
  virtual ~Explorer() = default;
  // Proposes at most `count` points, none of which was proposed or told before. Fewer only when the
  // space has no more.
  virtual std::vector<Point> propose(int count) = 0;
  virtual void tell(std::span<const Point> points, std::span<const double> seconds) = 0;
};

}  // namespace tw
