// The names under which the algorithms of products are kept for later compiles.
#pragma once
#include <string>

#include "ir/group.h"

namespace tw {

inline std::string product_name(const Graph& graph, const Group& group) {
  return graph.value(graph.node(group.anchor).output).name;
}

// The name with the shape. Regions, such as the branches of an If, may each have a value of one
// name.
inline std::string sized_product_name(const Graph& graph, const Group& group) {
  return product_name(graph, group) + " " +
         to_string(graph.value(graph.node(group.anchor).output).type.shape);
}

}  // namespace tw
