// The names by which the algorithms of products are kept for later compiles.
#pragma once
#include <string>

#include "ir/group.h"

namespace tw {

// The value that the group's product makes.
inline std::string product_name(const Graph& graph, const Group& group) {
  return graph.value(graph.node(group.anchor).output).name;
}

// With its shape: of several graphs that nodes run, as branches, each may have a value of one name.
inline std::string sized_product_name(const Graph& graph, const Group& group) {
  return product_name(graph, group) + " " +
         to_string(graph.value(graph.node(group.anchor).output).type.shape);
}

}  // namespace tw
