// The map of a pack step: how the indices of the packed factor are made of the stage's loops.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/schedule/nest.h"

namespace tw::sched {

class PackMap {
 public:
  // The stage's packed number, its condition and its loops, from the outside in. symbols: those of
  // its kernel
  PackMap(const step::Pack& s, Expr number, Expr where, const std::vector<std::string>& symbols,
          const std::vector<LoopRef>& loops, Ranges ranges);

  // Errors: the map does not name all of each loop on which the number depends, or names a part
  // twice.
  Error read();
  std::vector<Expr> shape() const;
  const Expr& element() const { return element_; }  // the number at the loops that fill the temp
  // The condition under which the point exists there, loop by loop in the order of the map, then
  // the stage's own if it depends on no other loops, and on no symbols while compiling: where that
  // does not hold, numbers need not exist
  Expr inside() const;
  // True: the number is computed without regard to the stage's condition.
  bool exists_at_all_points() const { return !condition_.defined(); }
  // True: the temp has places between those of the stage's points.
  bool has_windows() const { return sources_.size() > loop_count_; }
  // The ranges of the stage's loops while they run over whole parts
  Ranges whole_ranges() const;

 private:
  // A part of an index of the temp: indices are parts, or sums a * extent of b + b of such
  struct Place {
    size_t index = 0, part = 0;
  };
  // A loop, or a part of one: it has a place, or is cut by the factor. The remainder may be absent
  // if the number does not depend on it.
  struct LoopPart {
    std::optional<Place> place;
    int64_t factor = 0;
    std::unique_ptr<LoopPart> quotient, remainder;
    bool named() const { return place || factor; }
  };
  // A loop, or the places of a sliding window: a sum of loops times positive constants
  struct Term {
    size_t loop;
    int64_t factor;
    bool operator==(const Term&) const = default;
  };
  struct Source {
    std::string loop;  // a window: the loop whose factor is 1, or the first of two
    Expr extent;
    std::vector<Term> window;  // empty: a loop
    LoopPart part;
  };
  // One cut of a chain: the part's quotient or remainder by the factor
  struct Cut {
    bool quotient;
    int64_t factor;
  };
  // An index first * factor + last
  struct Sum {
    Expr first, last;
    int64_t factor;
  };

  static std::optional<Cut> cut_of(const Expr& e, Expr& inner);
  static std::optional<Sum> sum_of(const Expr& e);
  std::optional<size_t> loop_named(const Expr& e) const;
  std::optional<int64_t> count_of(const Expr& index) const;
  Error add(size_t index, const Expr& e);
  Expected<size_t> source_of(const Expr& e);
  Expected<size_t> window_of(const Expr& e);
  Error twice(const Expr& e) const;
  Error check_parts(const LoopPart& part, const Source& source, bool may_lack_remainder) const;
  void measure(const LoopPart& part, const Expr& extent);
  std::pair<std::string, int64_t> apart(const Source& source) const;
  static std::pair<int64_t, int64_t> without_unit(const Source& source);
  Expr moved(const Expr& e) const;
  Expr whole_extent(const LoopPart& part, const Expr& extent) const;
  Expr value_at(const Place& place) const;
  Expr value_of(const LoopPart& part, const std::string& loop) const;
  void add_condition(const LoopPart& part, const Source& source, const Expr& extent,
                     Expr& condition) const;
  bool slides(size_t loop) const;
  Expr condition_there() const;

  const step::Pack& s_;
  Expr number_, where_;
  Expr element_, condition_;  // the number and the condition at the loops that fill the temp
  const std::vector<std::string>& symbols_;
  Ranges ranges_;
  size_t loop_count_;
  std::vector<Source> sources_;             // the loops, then windows
  std::vector<size_t> order_;               // sources, as the map names them
  std::vector<std::vector<Expr>> extents_;  // by index: those of its parts
};

}  // namespace tw::sched
