#include "tests/fuzz/run_small.h"

#include "ir/kernel/interpreter.h"
#include "ir/simplify.h"

namespace tw::fuzz {
namespace {

constexpr int64_t kMostPoints = 1 << 14, kMostBytes = 1 << 20;
constexpr int64_t kSizes[] = {1, 2, 3, 8};  // sizes for all symbols

// An upper bound of the number of stores that run, cut off at kMostPoints + 1.
int64_t points(const Stmt& s, Ranges& ranges) {
  const auto* loop = as<stmt::Loop>(s);
  int64_t inner = is<stmt::Store>(s);
  if (loop) ranges[loop->var] = {Expr(0), loop->extent - Expr(1)};
  for (const Stmt& child : children(s))
    inner = std::min(inner + points(child, ranges), kMostPoints + 1);
  if (!loop) return inner;
  const std::optional<int64_t> extent = constant_bounds(loop->extent, ranges).max;
  ranges.erase(loop->var);
  if (!extent || *extent > kMostPoints) return kMostPoints + 1;
  return std::min(std::max<int64_t>(*extent, 1) * std::max<int64_t>(inner, 1), kMostPoints + 1);
}

// Returns one dense array for each parameter, or nullopt if they are too large.
std::optional<std::vector<KernelArgument>> arguments_of(
    const Kernel& kernel, const std::map<std::string, int64_t>& symbols) {
  std::vector<KernelArgument> arguments;
  int64_t all = 0;
  for (const Buffer& b : kernel.buffers) {
    int64_t bytes = dtype_bytes(b.dtype);
    for (const Expr& extent : b.shape) {
      const int64_t count = eval_int(
          extent, [&](std::string_view name) { return symbols.at(std::string(name)); });
      if (count < 0 || count > kMostBytes || (bytes *= count) > kMostBytes) return std::nullopt;
    }
    if ((all += bytes) > kMostBytes) return std::nullopt;
    if (b.role == BufferRole::temp) continue;
    std::vector<std::byte> data(static_cast<size_t>(bytes));
    for (size_t i = 0; i < data.size(); ++i) data[i] = std::byte(i * 37 % 251);
    arguments.push_back({std::move(data)});
  }
  return arguments;
}

}  // namespace

void check_really_within(const Kernel& kernel, Tables tables) {
  if (Error error = check_bounds(kernel, tables)) return llvm::consumeError(std::move(error));
  for (const int64_t size : kSizes) {
    std::map<std::string, int64_t> symbols;
    Ranges ranges;
    for (const std::string& symbol : kernel.symbols) {
      symbols[symbol] = size;
      ranges[symbol] = {Expr(size), Expr(size)};
    }
    if (points(kernel.body, ranges) > kMostPoints) return;
    std::optional<std::vector<KernelArgument>> arguments = arguments_of(kernel, symbols);
    if (!arguments) return;
    const std::string problem = error_text(interpret(kernel, *arguments, symbols));
    TW_CHECK(problem.find("outside its shape") == std::string::npos,
             "what was shown to be within its buffers is not: {0}", problem);
    if (kernel.symbols.empty()) return;
  }
}

}  // namespace tw::fuzz
