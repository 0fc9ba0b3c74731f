#include "driver/accuracy/take_back.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace tw;

namespace {

// A model whose squared error is the sum over the choices taken.
struct Model {
  std::vector<double> squares;
  int builds = 0;

  double error(const std::function<bool(size_t)>& taken) {
    ++builds;
    double sum = 0;
    for (size_t i = 0; i < squares.size(); ++i)
      if (taken(i)) sum += squares[i];
    return std::sqrt(sum);
  }
  ChoiceErrors errors() {
    return {squares.size(),
            [this](size_t first, size_t last) -> Expected<double> {
              return error([&](size_t i) { return i >= first && i < last; });
            },
            [this](const std::set<size_t>& back) -> Expected<double> {
              return error([&](size_t i) { return !back.contains(i); });
            }};
  }
};

TakenBack taken_back(Model& model, double most) {
  const double all = model.error([](size_t) { return true; });
  Expected<TakenBack> taken = take_back(model.errors(), all, most);
  REQUIRE(bool(taken));
  return *taken;
}

}  // namespace

TEST_CASE("choices are taken back the worst first, and no more than needed") {
  Model model{{1, 0, 100, 1, 0, 0, 49, 1}};
  const TakenBack one = taken_back(model, 8);
  CHECK(one.choices == std::set<size_t>{2});
  CHECK(one.error == doctest::Approx(std::sqrt(52)));
  CHECK(taken_back(model, 2).choices == std::set<size_t>{2, 6});
  model.builds = 0;
  taken_back(model, 8);
  CHECK(model.builds == 1 + 2 * 3 + 1);  // three halvings find one of eight choices
}

TEST_CASE("nothing is taken back within the limit, and all of it where nothing else does") {
  Model model{{1, 1, 1}};
  CHECK(taken_back(model, 2).choices.empty());
  CHECK(taken_back(model, 2).within);
  const TakenBack all = taken_back(model, 0);
  CHECK(all.choices.size() == 3);
  CHECK(all.within);
  Model none{{}};
  CHECK(taken_back(none, 0).within);
  const TakenBack never = taken_back(model, -1);
  CHECK(never.choices.size() == 3);
  CHECK_FALSE(never.within);
}
