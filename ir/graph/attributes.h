// Attribute structs as text: one visitor each way over `fields`, for every op.
#pragma once
#include <functional>

#include "ir/graph/graph.h"
#include "support/lexer.h"

namespace tw {

// Fields that say which operator it is (function, kind, to) are always written, others only when
// not at their default.
std::string print_attrs(const OpAttrs& attrs);
// Default attributes of the op with this name; an error lists close names.
Expected<OpAttrs> attrs_of_op(Lexer& lexer, const Token& name);
// Parses `field=value` for one field of attrs; fails when attrs has no such field. graph: parses
// the graph of a region.
Error parse_attr(Lexer& lexer, OpAttrs& attrs, const std::function<Expected<Graph>()>& graph);
// "[batch, 64]"
Expected<Shape> parse_shape(Lexer& lexer);

}  // namespace tw
