// Finds the values from which a graph's data symbols are read. It keeps an index by name, for
// callers that ask about many nodes.
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
  explicit SymbolSources(const Graph& graph);  // indexes the current symbols
  // The sources of the symbols in these expressions and in the symbols' bounds
  std::vector<ValueId> of(const std::vector<Expr>& dims) const;
  std::vector<ValueId> of(const OpAttrs& attrs) const;

 private:
  std::map<std::string_view, const DataSymbol*> symbols_;
};

// Removes symbols that the graph no longer has from the symbol lists of its regions, inner ones
// included.
void drop_symbols_in_regions(Graph& graph);

}  // namespace tw
