// Values that the data symbols of a graph are read from, looked up by name: for whoever asks about
// many nodes.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"

namespace tw {

// "for mask (Where): element 0 of 'v'", for messages
std::string element_title(const Graph& graph, const DataSymbol& symbol);

class SymbolSources {
 public:
  explicit SymbolSources(const Graph& graph);  // of the graph's symbols as they are now
  // Of the symbols in these expressions and in their bounds.
  std::vector<ValueId> of(const std::vector<Expr>& dims) const;
  std::vector<ValueId> of(const OpAttrs& attrs) const;

 private:
  std::map<std::string_view, const DataSymbol*> symbols_;
};

// Takes symbols that the graph has no more out of the lists of the graphs that its nodes run, and
// of those within.
void drop_symbols_in_regions(Graph& graph);

}  // namespace tw
