#include "autotune/explorers/explorers.h"
#include "autotune/explorers/seen.h"

namespace tw {
namespace {

class Grid : public Explorer {
 public:
  explicit Grid(const Space& space) : space_(space), size_(space.size()), seen_(space) {}

  std::vector<Point> propose(int count) override {
    std::vector<Point> out;
    for (; next_ < size_ && static_cast<int>(out.size()) < count; ++next_)
      if (Point point = space_.at(next_); seen_.add(point)) out.push_back(std::move(point));
    return out;
  }
  void tell(std::span<const Point> points, std::span<const double>) override {
    for (const Point& point : points)
      if (in_space(point)) seen_.add(point);
  }

 private:
  const Space& space_;
  double size_, next_ = 0;
  Seen seen_;
};

}  // namespace

std::unique_ptr<Explorer> grid_explorer(const Space& space) {
  return std::make_unique<Grid>(space);
}

}  // namespace tw
