// The facts that feature extractors need of a scheduled kernel: its innermost statements, the loops
// around them, and the elements that they touch. The numbers are plain and as exact as boxes are,
// because thousands of candidates are examined. Symbols count as kSymbolValue. An extent that
// depends on outer loops is taken at their middle.
#pragma once
#include <string_view>
#include <vector>

#include "ir/kernel/kernel.h"

namespace tw::features {

inline constexpr double kSymbolValue = 64;

struct LoopAround {
  const stmt::Loop* node = nullptr;
  double extent = 1;
};

// A place where a statement reads or writes a buffer
struct Use {
  std::vector<Expr> indices;
  std::vector<bool> moved;  // by loop: the indices depend on it
};
// All of a statement's uses of one buffer.
struct Touch {
  BufferId buffer;
  bool read = false, written = false;
  std::vector<Use> uses;
};

// Operations by kind. A product that is added at once is one `mad`.
struct OpCounts {
  double mad = 0, add = 0, mul = 0, div = 0, compare = 0, math = 0, other = 0;
  double total() const { return 2 * mad + add + mul + div + compare + math + other; }
};

struct Statement {
  const stmt::Store* store = nullptr;
  std::vector<LoopAround> loops;  // outermost first
  std::vector<Touch> touches;     // the written buffer first, then in order of reading
  OpCounts floats, ints;          // operations of one iteration; ints include those of indices
  double bools = 0, selects = 0;
  int guards = 0;  // ifs around the statement, and its own condition

  double iterations(size_t from = 0) const;  // iterations of the loops from `from` inwards
};

std::vector<Statement> statements_of(const Kernel& kernel);
// The first statement with the most work; null: there is none
const Statement* main_statement(const std::vector<Statement>& statements);

// The functions below count over the loops from `level` inwards; outer loops stand still.
// Distinct elements, at most
double elements(const Kernel& kernel, const Statement& s, const Touch& touch, size_t level);
double lines(const Kernel& kernel, const Statement& s, const Touch& touch, size_t level,
             double line_bytes);
// Iterations of the loops that move the indices
double count(const Statement& s, const Use& use, size_t level);
double reuse(const Statement& s, const Use& use, size_t level);  // iterations of the other loops
bool moves(const Touch& touch, size_t loop);                     // the loop moves some use
// Distance in elements from one iteration of the loop to the next, absolute
double stride(const Kernel& kernel, const Statement& s, const Use& use, size_t loop);
// The divisor of a floor_mod around the variable; 0: none
double modulus(const Use& use, std::string_view var);
double bytes_of(const Kernel& kernel, BufferId buffer);

}  // namespace tw::features
