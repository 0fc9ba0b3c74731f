// Tables that fit where they are read.
#pragma once
#include <string>

namespace tw {

constexpr int kPlainColumns = 100;     // of a file or a pipe
int terminal_columns(int descriptor);  // 0: it is no terminal, or one that does not say

// The text in so many columns: what is too long is cut in its middle, "conv 64x56..3x3 relu"; never
// inside of a character. It stays one line: names come from models.
std::string fit(std::string text, int columns);
// The same, filled up with spaces.
std::string column(const std::string& text, int columns);

}  // namespace tw
