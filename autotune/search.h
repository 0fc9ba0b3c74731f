// What the parts of a search know of each other: candidates, cost models, explorers. Everything is
// deterministic for a seed.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "autotune/record.h"
#include "autotune/space.h"
#include "ir/kernel/kernel.h"
#include "ir/schedule/schedule.h"

namespace tw {

// What a candidate is to a cost model.
struct Candidate {
  // Sketch -1: from elsewhere than the space (a record, another task's schedule)
  Point point;
  Schedule schedule;
  std::shared_ptr<const Kernel> kernel;  // scheduled
  int variant = 0;                       // of the task, whose lowered kernel the schedule rewrites
};
inline bool in_space(const Point& point) { return point.sketch >= 0; }

// The candidate of a point. Error: the point is illegal (ordinary).
using MakeCandidate = std::function<Expected<Candidate>(const Point&)>;

// Measurements of one task; times of different tasks are never compared with each other.
struct MeasuredSet {
  std::vector<Candidate> candidates;
  std::vector<double> seconds;  // infinite: failed
};

class CostModel {  // higher score = faster
 public:
  virtual ~CostModel() = default;
  // All of the task so far; seconds infinite: failed
  virtual void fit(std::span<const Candidate> candidates, std::span<const double> seconds) = 0;
  virtual std::vector<double> score(std::span<const Candidate> candidates) = 0;
  // What similar tasks have taught, before the first fit. Whether it can score by that.
  virtual bool transfer(std::span<const MeasuredSet>) { return false; }
  // Whether the point alone is enough: the rest of the candidate may then be empty.
  virtual bool knows(const Point&) const { return false; }
};

class Explorer {  // proposes points to measure, told what was measured
 public:
  virtual ~Explorer() = default;
  // At most `count` points, none of which was proposed or told before; fewer only when the space
  // has no more.
  virtual std::vector<Point> propose(int count) = 0;
  virtual void tell(std::span<const Point> points, std::span<const double> seconds) = 0;
  virtual bool exhausted() const { return false; }
};

}  // namespace tw
