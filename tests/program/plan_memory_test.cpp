#include "program/plan_memory.h"

#include <doctest/doctest.h>

#include <ctime>
#include <random>

#include "program/sizes.h"

using namespace tw;

namespace {

int64_t number(const Expr& e) { return *as_const(e); }

int64_t sum_alive(const std::vector<Lifetime>& buffers) {  // the least that any plan can do with
  int64_t most = 0;
  for (int call = 0; call < 64; ++call) {
    int64_t sum = 0;
    for (const Lifetime& b : buffers)
      if (b.first <= call && call <= b.last) sum += number(b.bytes);
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace

TEST_CASE("memory plan: buffers alive together do not overlap, and little is wasted") {
  std::mt19937 random(3);
  double planned = 0, least = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> buffers;
    for (size_t n = 1 + random() % 40; n > 0; --n) {
      int first = static_cast<int>(random() % 40);
      buffers.push_back({Expr(64 * static_cast<int64_t>(1 + random() % 30)), first,
                         first + static_cast<int>(random() % 5)});
    }
    MemoryPlan plan = plan_memory(buffers, {});
    REQUIRE(plan.offsets.size() == buffers.size());
    for (size_t i = 0; i < buffers.size(); ++i) {
      int64_t begin = number(plan.offsets[i]), end = begin + number(buffers[i].bytes);
      CHECK(begin >= 0);
      CHECK(begin % 64 == 0);
      CHECK(end <= number(plan.bytes));
      for (size_t j = 0; j < i; ++j) {
        bool together = buffers[i].first <= buffers[j].last && buffers[j].first <= buffers[i].last;
        int64_t other = number(plan.offsets[j]);
        if (together) CHECK((end <= other || other + number(buffers[j].bytes) <= begin));
      }
    }
    planned += static_cast<double>(number(plan.bytes));
    least += static_cast<double>(sum_alive(buffers));
  }
  CHECK(planned < 1.1 * least);
}

TEST_CASE("memory plan: a chain goes back and forth between two places") {
  std::vector<Lifetime> chain;
  for (int i = 0; i < 10; ++i) chain.push_back({Expr(8192), i, i + 1});
  MemoryPlan plan = plan_memory(chain, {});
  CHECK(number(plan.bytes) == 16384);
  CHECK(warm_share(plan, chain, 1 << 20) == doctest::Approx(0.8));
  CHECK(warm_share(plan, chain, 4096) == 0);
}

TEST_CASE("memory plan: the bytes used last are taken first") {
  // Two dead buffers make room; the one that died later is the warmer place.
  std::vector<Lifetime> buffers = {
      {Expr(640), 0, 1}, {Expr(640), 0, 5}, {Expr(640), 6, 7}, {Expr(1280), 8, 9}};
  MemoryPlan plan = plan_memory(buffers, {});
  CHECK(number(plan.bytes) == 1280);
  CHECK(number(plan.offsets[2]) == number(plan.offsets[1]));
}

TEST_CASE("memory plan: what it takes does not follow the buffers' sizes") {
  constexpr int64_t kHuge = int64_t{1} << 45;  // a list of its pages would not fit in memory
  std::vector<Lifetime> chain;
  for (int i = 0; i < 10; ++i) chain.push_back({Expr(kHuge + 4096 * i), i, i + 1});
  const MemoryPlan plan = plan_memory(chain, {});
  CHECK(number(plan.bytes) >= 2 * kHuge);
  CHECK(warm_share(plan, chain, 1 << 20) == 0);
  CHECK(warm_share(plan, chain, int64_t{1} << 60) > 0.7);
}

TEST_CASE("memory plan: many buffers alive at once, and many one after the other") {
  constexpr int kCount = 4000;
  std::vector<Lifetime> wide, chain;
  for (int i = 0; i < kCount; ++i) {
    wide.push_back({Expr(64 * (1 + i % 7)), i, kCount});
    chain.push_back({Expr(64 * (1 + i % 7)), i, i + 1});
  }
  const std::clock_t begin = std::clock();
  int64_t all = 0;
  for (const Lifetime& b : wide) all += number(b.bytes);
  CHECK(number(plan_memory(wide, {}).bytes) == all);
  CHECK(number(plan_memory(chain, {}).bytes) <= 64 * 14);
  // Looking at all pairs for each buffer would take minutes.
  CHECK(std::clock() - begin < 20 * CLOCKS_PER_SEC);
}

TEST_CASE("the most bytes of sizes that are products of a size with its parts") {
  const Expr n = var("n"), bytes = n * n * 256 + n * floor_div(n, 2) * 64 + n * 1024;
  const Ranges within = {{"n", {Expr(2), Expr(5)}}};
  CHECK(number(most_bytes(bytes, {"n"}, within)) == 25 * 256 + 10 * 64 + 5 * 1024);
  CHECK(number(most_bytes(n * 64, {"n"}, within)) == 320);
  CHECK_FALSE(most_bytes(bytes, {"n"}, {{"n", symbol_range("n")}}).defined());
}
