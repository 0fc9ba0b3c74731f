#include "driver/compile/example_sizes.h"

#include <algorithm>
#include <cctype>

namespace tw {
namespace {

constexpr int64_t kPixels = 224, kLength = 128, kFromData = 100;

// The usual size of a dimension with this name; nullopt: the name says nothing
std::optional<int64_t> by_name(std::string name) {
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto holds = [&](std::initializer_list<std::string_view> words) {
    return std::ranges::any_of(
        words, [&](std::string_view word) { return name.find(word) != std::string::npos; });
  };
  const auto is = [&](std::initializer_list<std::string_view> words) {
    return std::ranges::count(words, name) > 0;
  };
  if (holds({"batch"}) || is({"n", "b", "bs"})) return 1;
  if (holds({"height", "width", "pixel"}) || is({"h", "w"})) return kPixels;
  if (holds({"seq", "len", "time", "token", "frame", "step"}) || is({"t", "l", "s"}))
    return kLength;
  return std::nullopt;
}

int64_t by_place(const TensorSpec& input, size_t axis) {
  const size_t rank = input.dims.size();
  if (axis == 0 && rank > 1) return 1;
  const bool picture = rank >= 4 && axis >= 2 && !as_const(input.dims[rank - 1]);
  return picture ? kPixels : kLength;
}

}  // namespace

Sizes example_sizes(const std::vector<TensorSpec>& inputs, const SymbolNames& names,
                    const SymbolLimitsOf& limits) {
  Sizes sizes;
  for (const TensorSpec& input : inputs)
    for (size_t axis = 0; axis < input.dims.size(); ++axis) {
      const Expr& dim = input.dims[axis];
      const std::string* name = var_name(dim);
      if (!name || sizes.count(*name)) continue;
      const SymbolLimits range = limits_of(limits, *name);
      const int64_t usual = by_name(symbol_name(names, *name)).value_or(by_place(input, axis));
      const int64_t wanted = std::clamp(usual, std::max<int64_t>(1, range.least),
                                        std::max<int64_t>(1, range.most));
      sizes[*name] = std::max(wanted / range.step * range.step,
                              (range.least + range.step - 1) / range.step * range.step);
    }
  return sizes;
}

int64_t value_at(const Expr& e, Sizes& sizes) {
  return eval_int(e, [&](std::string_view symbol) {
    return sizes.try_emplace(std::string(symbol), kFromData).first->second;
  });
}

std::string sizes_text(const Sizes& sizes, const SymbolNames& names) {
  std::string text;
  for (const auto& [symbol, size] : sizes)
    text += (text.empty() ? "" : ", ") + symbol_name(names, symbol) + "=" + std::to_string(size);
  return text;
}

std::vector<std::string> size_flags(const Sizes& sizes, const SymbolNames& names) {
  std::vector<std::string> flags;
  for (const auto& [symbol, size] : sizes)
    flags.push_back(symbol_name(names, symbol) + "=" + std::to_string(size));
  return flags;
}

std::vector<TensorSpec> input_specs(const Graph& graph) {
  std::vector<TensorSpec> specs;
  for (const ValueId id : graph.inputs()) {
    const Value& v = graph.value(id);
    specs.push_back({v.name, v.type.dtype, v.type.shape});
  }
  return specs;
}

std::vector<TensorSpec> with_names(std::vector<TensorSpec> specs, const SymbolNames& names) {
  for (TensorSpec& spec : specs)
    for (Expr& dim : spec.dims)
      if (!as_const(dim)) dim = var(to_string(dim, names));
  return specs;
}

}  // namespace tw
