// What was simplified before on this thread. Schedules of one kernel, tried by the thousand, ask
// for the same expressions again and again.
#pragma once
#include <set>
#include <unordered_map>
#include <vector>

#include "ir/simplify.h"

namespace tw::algebra {

class SimplifyMemo {
 public:
  // An expression among the ranges that its result can depend on: those of its variables, and of
  // the variables of these ranges.
  struct Question {
    Expr e;
    std::vector<std::pair<std::string, Range>> ranges;  // of no bounds where there is none
    size_t hash = 0;
    Question(const Expr& expression, const Ranges& all);

   private:
    bool is_new(const std::string& name);
    void add_variables(const Expr& of, const Ranges& all);
    std::set<std::string> names_;  // of many ranges, while they are found
  };

  const Expr* find(const Question& question) const;  // null: not known
  void keep(Question question, Expr result);

 private:
  struct Known {
    Question question;
    Expr result;
  };
  std::unordered_multimap<size_t, Known> known_;
};

}  // namespace tw::algebra
