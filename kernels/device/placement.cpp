#include "kernels/device/placement.h"

#include <algorithm>

namespace tw {
namespace {

struct ThreadPlace {
  int64_t thread = 0, element = 0;
  bool operator==(const ThreadPlace&) const = default;
};

class PlacementReader {
 public:
  PlacementReader(const Kernel& semantics, BufferId parameter,
                  const std::array<std::string, 2>& axes, int64_t threads)
      : shape_(semantics.buffer(parameter).shape),
        indices_(indices_of(semantics, parameter)),
        axes_(axes),
        threads_(threads) {
    for (size_t a = 0; a < axes.size(); ++a)
      if (const LoopRef loop = find_loop(semantics.body, axes[a]))
        out_.extents[a] = as_const(loop->extent).value_or(0);
  }

  std::optional<OperandPlacement> run() {
    if (indices_.size() < 2 || indices_.size() != shape_.size()) return std::nullopt;
    for (size_t a = 0; a < axes_.size(); ++a)
      if (!read_axis(a)) return std::nullopt;
    if (!adds_up() || !counts_threads()) return std::nullopt;
    return out_;
  }

 private:
  ThreadPlace at(int64_t first, int64_t second) const {
    const auto value = [&](const Expr& e) {
      return eval_int(e, [&](std::string_view name) { return name == axes_[0] ? first : second; });
    };
    ThreadPlace place{value(indices_[0]), 0};
    for (size_t d = 1; d < indices_.size(); ++d)
      place.element = place.element * as_const(shape_[d]).value_or(1) + value(indices_[d]);
    return place;
  }

  // Reads the axis bit by bit and joins neighbouring bits of one kind to digits.
  bool read_axis(size_t a) {
    const int64_t extent = out_.extents[a];
    std::vector<PlacementDigit>& digits = out_.digits[a];
    if (extent < 1 || (extent & (extent - 1)) != 0) return false;
    for (int64_t bit = 1; bit < extent; bit *= 2) {
      const ThreadPlace step = a == 0 ? at(bit, 0) : at(0, bit);
      if ((step.thread != 0) == (step.element != 0)) return false;
      steps_[a].push_back(step);
      const bool joins = !digits.empty() && (step.thread == 0) == (digits.back().thread == 0) &&
                         step.thread == digits.back().thread * digits.back().extent;
      if (joins) digits.back().extent *= 2;
      else digits.push_back({bit, 2, step.thread});
    }
    if (digits.empty()) digits.push_back({});
    return true;
  }

  bool adds_up() const {
    for (int64_t i = 0; i < out_.extents[0]; ++i)
      for (int64_t j = 0; j < out_.extents[1]; ++j) {
        ThreadPlace sum;
        for (size_t a = 0; a < steps_.size(); ++a)
          for (size_t bit = 0; bit < steps_[a].size(); ++bit)
            if (((a == 0 ? i : j) >> bit & 1) != 0)
              sum.thread += steps_[a][bit].thread, sum.element += steps_[a][bit].element;
        if (sum != at(i, j)) return false;
      }
    return true;
  }

  // True: the digits that count threads form all thread numbers together.
  bool counts_threads() const {
    std::vector<PlacementDigit> all;
    for (const auto& digits : out_.digits)
      for (const PlacementDigit& digit : digits)
        if (digit.thread != 0) all.push_back(digit);
    std::ranges::sort(all, {}, &PlacementDigit::thread);
    int64_t count = 1;
    for (const PlacementDigit& digit : all) {
      if (digit.thread != count) return false;
      count *= digit.extent;
    }
    return count == threads_;
  }

  std::vector<Expr> shape_;
  std::vector<Expr> indices_;
  std::array<std::string, 2> axes_;
  int64_t threads_;
  std::array<std::vector<ThreadPlace>, 2> steps_;  // by axis: the place that each of its bits adds
  OperandPlacement out_;
};

}  // namespace

std::vector<Expr> indices_of(const Kernel& semantics, BufferId parameter) {
  for (const StoreRef& store : stores_of(semantics.body)) {
    if (store->buffer == parameter) return store->indices;
    std::vector<Expr> found;
    visit(store->value, [&](const Expr& e) {
      const auto* load = as<expr::Load>(e);
      if (load && load->buffer == parameter) found = load->indices;
    });
    if (!found.empty()) return found;
  }
  return {};
}

std::optional<OperandPlacement> placement_of(const Kernel& semantics, BufferId parameter,
                                             const std::array<std::string, 2>& axes,
                                             int64_t threads) {
  return PlacementReader(semantics, parameter, axes, threads).run();
}

}  // namespace tw
