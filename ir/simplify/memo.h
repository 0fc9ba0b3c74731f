// Remembers what simplify() returned earlier on this thread. A search tries thousands of schedules
// of one kernel, and these ask for the same expressions again and again.
#pragma once
#include <set>
#include <unordered_map>
#include <vector>

#include "ir/simplify.h"

namespace tw::algebra {

class SimplifyMemo {
 public:
  // An expression with the ranges on which its result can depend: those of its variables, and of
  // the variables in these ranges
  struct Question {
    Expr e;
    std::vector<std::pair<std::string, Range>> ranges;  // an unknown range has no bounds
    size_t hash = 0;
    Question(const Expr& expression, const Ranges& all);

   private:
    bool is_new(const std::string& name);
    void add_variables(const Expr& of, const Ranges& all);
    std::set<std::string> names_;  // names found so far, once there are many
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
