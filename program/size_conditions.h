// Conditions on sizes that cannot be shown before the sizes are known. They become conditions of a
// program, and steps between its calls.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/program.h"

namespace tw {

Expr interface_terms(const Expr& e);  // replaces symbols by the interface's names

// Adds the conditions of symbols whose limits have a step: sizes are multiples of it.
void require_steps(const Graph& graph, Program& program);

std::string node_title(const Graph& graph, const Node& node);  // "conv1 (Conv)", for messages
// " where a branch of i (If) runs", for a node with regions
std::string where_it_runs(const Graph& graph, const Node& node);

// Conditions on sizes of the inputs are checked before the run, others before the next call. A
// region's conditions are all checked where it runs.
class SizeConditions {
 public:
  // `program` gets the conditions and steps. All arguments must outlive this object.
  SizeConditions(const Graph& graph, const Ranges& symbols, bool in_region, Program& program)
      : graph_(graph), symbols_(symbols), in_region_(in_region), program_(program) {}

  // Adds the conditions without which the node has no result. Errors: a condition that never holds.
  Error add(const Node& node);

 private:
  Error need(const Expr& condition, const Node& node, const std::string& index = "");
  // title: "conv1 (Conv): 'y'", for messages
  void need_walkable(ValueId value, const std::string& title);
  void need_countable(ValueId value, const std::string& title);
  bool known_before_run(const Expr& e) const;
  void add_condition(const Expr& holds, const std::string& what);

  const Graph& graph_;
  const Ranges& symbols_;
  const bool in_region_;
  Program& program_;
  std::set<std::string> needed_;  // conditions and byte counts that have been handled
  // By size: its largest multiple that must be countable, and the index of that condition
  std::map<std::string, std::pair<int64_t, size_t>> multiples_;
};

Ranges ranges_of(const Graph& graph);  // ranges of its symbols, by their limits and bounds

// Adds the needs of a region of the node, with the place where it runs.
void add_needs_of_region(const std::vector<std::string>& region, const Graph& graph,
                         const Node& node, std::vector<std::string>& needs);

// Program::needs of a graph that is not lowered, its regions included. Leaves out conditions of the
// graph itself that never hold.
std::vector<std::string> needs_of(const Graph& graph);

}  // namespace tw
