// The rules of canonicalize, by family. A rule looks at one live node. It rewrites the node and
// returns true, or leaves everything as it is and returns false.
#pragma once
#include <span>

#include "passes/rewriter.h"

namespace tw {

struct Rule {
  const char* name;
  bool (*apply)(Rewriter&, NodeId);
};
// The rule, limited to nodes whose inputs and output are stored row-major.
template <bool (*rule)(Rewriter&, NodeId)>
bool when_plain(Rewriter& rewriter, NodeId id) {
  return all_plain(rewriter.graph(), rewriter.node(id)) && rule(rewriter, id);
}
std::span<const Rule> element_wise_rules();   // element_wise.cpp
std::span<const Rule> movement_rules();       // movement.cpp
std::span<const Rule> contraction_rules();    // contraction.cpp
std::span<const Rule> normalization_rules();  // normalization.cpp

}  // namespace tw
