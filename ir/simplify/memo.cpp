#include "ir/simplify/memo.h"

#include <algorithm>

namespace tw::algebra {
namespace {

constexpr size_t kMostKnown = 1 << 13;  // at this size the memo starts anew

void mix(size_t& hash, size_t value) { hash = (hash ^ value) * 0x9e3779b97f4a7c15 + (hash >> 31); }

bool same(const Expr& a, const Expr& b) {
  return a.defined() == b.defined() && (!a.defined() || equal(a, b));
}

bool same(const std::pair<std::string, Range>& a, const std::pair<std::string, Range>& b) {
  return a.first == b.first && same(a.second.min, b.second.min) && same(a.second.max, b.second.max);
}

bool same(const SimplifyMemo::Question& a, const SimplifyMemo::Question& b) {
  return a.ranges.size() == b.ranges.size() && equal(a.e, b.e) &&
         std::equal(a.ranges.begin(), a.ranges.end(), b.ranges.begin(),
                    [](const auto& x, const auto& y) { return same(x, y); });
}

}  // namespace

SimplifyMemo::Question::Question(const Expr& expression, const Ranges& all)
    : e(expression), hash(hash_value(expression)) {
  add_variables(e, all);
  // The loop also visits the ranges that it appends.
  for (size_t i = 0; i < ranges.size(); ++i) {
    const Range range = ranges[i].second;
    if (range.min.defined()) add_variables(range.min, all);
    if (range.max.defined()) add_variables(range.max, all);
  }
  names_.clear();
  for (const auto& [name, range] : ranges) {
    mix(hash, range.min.defined() ? hash_value(range.min) : 1);
    mix(hash, range.max.defined() ? hash_value(range.max) : 2);
  }
}

// Searches a short list directly, and a longer one through a set of names.
bool SimplifyMemo::Question::is_new(const std::string& name) {
  constexpr size_t kFew = 16;
  if (ranges.size() < kFew)
    return std::ranges::none_of(ranges, [&](const auto& one) { return one.first == name; });
  if (names_.empty())
    for (const auto& [known, range] : ranges) names_.insert(known);
  return names_.insert(name).second;
}

void SimplifyMemo::Question::add_variables(const Expr& of, const Ranges& all) {
  visit(of, [&](const Expr& node) {
    const std::string* name = var_name(node);
    if (!name || !is_new(*name)) return;
    const auto found = all.find(*name);
    ranges.emplace_back(*name, found == all.end() ? Range() : found->second);
  });
}

const Expr* SimplifyMemo::find(const Question& question) const {
  const auto [begin, end] = known_.equal_range(question.hash);
  for (auto known = begin; known != end; ++known)
    if (same(known->second.question, question)) return &known->second.result;
  return nullptr;
}

void SimplifyMemo::keep(Question question, Expr result) {
  if (known_.size() >= kMostKnown) known_.clear();
  const size_t hash = question.hash;
  known_.emplace(hash, Known{std::move(question), std::move(result)});
}

}  // namespace tw::algebra
