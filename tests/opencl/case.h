// For tests: operators as lines of a graph's text form.
#pragma once
#include <doctest/doctest.h>

#include <string>

#include "ir/graph/graph.h"

namespace tw::test {

// An operator's graph: the lines of its inputs, and the lines that make %y. A dimension "batch" is
// free.
struct Case {
  const char* name;
  const char* inputs;
  const char* body;
};

inline Graph graph_of(const Case& one) {
  const bool symbolic = std::string(one.inputs).find("batch") != std::string::npos;
  Expected<Graph> graph = parse_graph(std::string("graph @case(") + (symbolic ? "batch" : "") +
                                          ") {\n" + one.inputs + "\n" + one.body +
                                          "\noutput %y\n}\n",
                                      one.name);
  if (!graph) FAIL(error_text(graph.takeError()));
  return std::move(*graph);
}

}  // namespace tw::test
