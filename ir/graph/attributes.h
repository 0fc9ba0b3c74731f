// Text form of operator attributes. One visitor over `fields` prints every operator, one parses it.
#pragma once
#include <functional>

#include "ir/graph/graph.h"
#include "support/lexer.h"

namespace tw {

// Fields that select the operator (function, kind, to) are always written; others only where they
// differ from the default.
std::string print_attrs(const OpAttrs& attrs);
// Default attributes of the operator with this name. An error lists similar names.
Expected<OpAttrs> attrs_of_op(Lexer& lexer, const Token& name);
// Parses `field=value` into attrs; fails where attrs has no such field. `graph` parses the graph of
// a region.
Error parse_attr(Lexer& lexer, OpAttrs& attrs, const std::function<Expected<Graph>()>& graph);
// Parses "[batch, 64]".
Expected<Shape> parse_shape(Lexer& lexer);

}  // namespace tw
