#include "autotune/dataset/prior.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "autotune/explorers/seen.h"

namespace tw {
namespace {

size_t below(size_t count, std::mt19937_64& random) {
  return std::min(count - 1, static_cast<size_t>(unit(random) * static_cast<double>(count)));
}

// A value within half a power of two of `value`; large values are multiples of eight, as in
// networks.
int64_t near(int64_t value, std::mt19937_64& random) {
  constexpr int64_t kLarge = 16, kStep = 8;
  const double drawn = static_cast<double>(value) * std::exp2(unit(random) - 0.5);
  const int64_t step = drawn >= kLarge ? kStep : 1;
  return std::max<int64_t>(1, std::llround(drawn / static_cast<double>(step)) * step);
}

}  // namespace

Prior::Prior(std::vector<Layer> table, const PriorOptions& options)
    : table_(std::move(table)), options_(options) {
  double end = 0;
  for (int kind = 0; kind < kLayerKindCount; ++kind)
    ends_.push_back(end += std::sqrt(static_cast<double>(
                        std::ranges::count(table_, static_cast<LayerKind>(kind), &Layer::kind))));
}

int64_t Prior::draw(LayerKind kind, size_t attribute, std::vector<std::pair<size_t, int64_t>> given,
                    std::mt19937_64& random) const {
  for (;;) {
    std::vector<const Layer*> alike;
    for (const Layer& layer : table_)
      if (layer.kind == kind && std::ranges::all_of(given, [&](const auto& one) {
            return layer.values[one.first] == one.second;
          }))
        alike.push_back(&layer);
    const auto count = static_cast<double>(alike.size());
    const bool fresh = given.empty() && is_size(kind, attribute) && unit(random) < options_.fresh;
    if (!alike.empty() && (given.empty() || unit(random) < count / (count + options_.back_off))) {
      const int64_t value = alike[below(alike.size(), random)]->values[attribute];
      return fresh ? near(value, random) : value;
    }
    given.erase(given.begin());  // forgets the number that was drawn first
  }
}

Layer Prior::sample(std::mt19937_64& random) const {
  const double at = unit(random) * ends_.back();
  Layer layer{static_cast<LayerKind>(std::ranges::upper_bound(ends_, at) - ends_.begin()), {}};
  const size_t count = attributes_of(layer.kind).size();
  layer.values.resize(count);
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = count; i > 1; --i) std::swap(order[i - 1], order[below(i, random)]);
  std::vector<std::pair<size_t, int64_t>> given;
  for (const size_t attribute : order) {
    layer.values[attribute] = draw(layer.kind, attribute, given, random);
    given.emplace_back(attribute, layer.values[attribute]);
  }
  return layer;
}

}  // namespace tw
