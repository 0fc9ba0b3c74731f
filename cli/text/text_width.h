// Fits text into the columns of a terminal.
#pragma once
#include <string>

namespace tw {

constexpr int kPlainColumns = 100;     // for a file or a pipe
int terminal_columns(int descriptor);  // 0: it is no terminal, or one that does not say

// The text, fitted to `columns` columns: a long one loses its middle, "conv 64x56..3x3 relu", and
// no character is cut. It stays one line, since names come from models.
std::string fit(std::string text, int columns);
// fit(), filled up with spaces
std::string column(const std::string& text, int columns);

}  // namespace tw
