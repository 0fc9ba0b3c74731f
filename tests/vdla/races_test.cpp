#include "backends/vdla/races.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "backends/vdla/requant.h"
#include "tests/vdla/vdla_testing.h"

using namespace tw;
using namespace tw::vdla;

namespace {

constexpr GemmShape kShape{.tiles = 6, .steps = 2, .pixels = 4, .k_blocks = 2};

Outcome outcome_of(const std::vector<Instruction>& stream) {
  Board board(stream);
  return run(board);
}

}  // namespace

TEST_CASE("the two-thread stream is race-free and computes the product") {
  for (int threads : {1, 2}) {
    std::vector<Instruction> stream = gemm_stream(kShape, threads);
    Board board(stream);
    int steps = kShape.tiles * kShape.steps, inp_bytes = kShape.pixels * kShape.k_blocks * 16;
    int weights = steps * inp_bytes, params = weights + kShape.steps * kShape.k_blocks * 256;
    RequantParams requant = *requant_params(0.0021f, 100);
    for (int lane = 0; lane < 16; ++lane) {
      uint64_t packed = pack(requant);
      std::memcpy(&board.dram[params + 8 * lane], &packed, 8);
    }
    Outcome outcome = run(board);
    REQUIRE_MESSAGE(outcome.ok(), text_of(describe(outcome, board.dram, board.launch)));
    CHECK(outcome.counters.gemm == static_cast<uint64_t>(steps * kShape.pixels * kShape.k_blocks));
    for (int tile = 0; tile < kShape.tiles; ++tile)
      for (int pixel = 0; pixel < kShape.pixels; ++pixel)
        for (int o = 0; o < 16; ++o) {
          int sum = 0;
          for (int k = 0; k < kShape.steps * kShape.k_blocks * 16; ++k) {
            int step = k / 16 / kShape.k_blocks, block = k / 16 % kShape.k_blocks;
            int x = (tile * kShape.steps + step) * inp_bytes +
                    (block * kShape.pixels + pixel) * 16 + k % 16;
            int w = weights + (step * kShape.k_blocks + block) * 256 + o * 16 + k % 16;
            sum += static_cast<int8_t>(board.dram[x]) * static_cast<int8_t>(board.dram[w]);
          }
          int8_t got = static_cast<int8_t>(
              board.dram[Board::kOutputs + (tile * kShape.pixels + pixel) * 16 + o]);
          REQUIRE(got == requantize(sum, requant, 0, -128, 127));
        }
  }
}

TEST_CASE("no single token can be deleted") {
  for (int threads : {1, 2}) {
    std::vector<Instruction> stream = gemm_stream(kShape, threads);
    int races = 0, deadlocks = 0;
    for (const TokenPlace& place : tokens_in(stream)) {
      Outcome outcome = outcome_of(without(stream, {place}));
      CAPTURE(place.index);
      CHECK((!outcome.races.empty() || outcome.fault == Fault::deadlock));
      races += !outcome.races.empty();
      deadlocks += outcome.fault == Fault::deadlock;
    }
    MESSAGE(threads, " virtual threads: ", tokens_in(stream).size(),
            " tokens, each deleted: ", races, " give races, ", deadlocks, " deadlock");
  }
}

TEST_CASE("no push can be deleted together with its pop") {
  // The counters stay balanced, so only the race checker notices.
  std::vector<Instruction> stream = gemm_stream(kShape, 2);
  const auto pairs = token_pairs(stream);
  for (const auto& [push, pop] : pairs) {
    Outcome outcome = outcome_of(without(stream, {push, pop}));
    CAPTURE(push.index);
    CHECK(outcome.fault == Fault::none);
    CHECK(!outcome.races.empty());
  }
  CHECK(pairs.size() == 12 + 10 + 6 + 4);
}

TEST_CASE("races name both instructions and the place") {
  Board board(std::string(
      "load.inp sram=4 x=3\nload.wgt push_next\ngemm pop_prev inp=5\nload.inp sram=5\nfinish"));
  Outcome outcome = run(board);
  REQUIRE(outcome.races.size() == 1);
  std::string text = text_of(describe(outcome, board.dram, board.launch));
  CHECK(
      text ==
      "no token orders instructions 2 and 3 at inp 5\n  note: instruction 2: gemm pop_prev inp=5\n"
      "  note: instruction 3: load.inp sram=5\n");
}

TEST_CASE("DRAM written and read again needs the way through compute") {
  auto races = [](const std::string& text) { return outcome_of(assembled(text)).races.size(); };
  CHECK(races("store.raw base=1\nload.inp base=1\nfinish") == 1);
  CHECK(races("store.raw base=1\nload.inp base=1 offset=64\nfinish") == 0);
  CHECK(races("store.raw base=1 push_prev\nsync.compute pop_next push_prev\nload.inp pop_next "
              "base=1\nfinish") == 0);
  CHECK(races("load.inp base=1 push_next\nsync.compute pop_prev push_next\nstore.raw pop_prev "
              "base=1\nfinish") == 0);
  CHECK(races("load.inp base=1 push_next\nsync.compute pop_prev\nsync.compute push_next\nstore.raw "
              "pop_prev base=1\nfinish") == 0);
  CHECK(races("sync.load push_next\nload.inp base=1\nsync.compute pop_prev push_next\nstore.raw "
              "pop_prev base=1\nfinish") == 1);
}

TEST_CASE("a store into instructions that are yet to be fetched") {
  auto at = [](uint32_t offset) {
    Board board("sync.load\nstore.raw base=2 offset=" + std::to_string(Board::kData + offset) +
                "\nsync.load\nfinish");
    return run(board).races;
  };
  CHECK(at(0).empty());  // both instructions there have been fetched
  REQUIRE(at(16).size() == 1);
  CHECK(at(16)[0].first == 1);
  CHECK(at(16)[0].second == 2);
}

TEST_CASE("parameters and accumulators of the store engine are watched too") {
  auto races = [](const std::string& text) { return outcome_of(assembled(text)).races.size(); };
  CHECK(races("load.prm\nstore.q8 base=1\nfinish") == 1);
  CHECK(races("load.prm\nstore.raw base=1\nfinish") == 0);
  CHECK(races("load.acc\nstore.raw base=1\nfinish") == 1);
  CHECK(races("gemm\nstore.raw base=1\nfinish") == 1);
  CHECK(races("gemm acc=1\nstore.raw base=1\nfinish") == 0);
  CHECK(races("load.acc sram=3\nalu.max src=3\nfinish") == 1);
}

TEST_CASE("counters that latency could overflow are told") {
  // In the simulator's order, compute takes every token at once. A slow compute engine would not.
  std::string text;
  for (int i = 0; i < 300; ++i) text += "sync.load push_next\nsync.compute pop_prev\n";
  Outcome outcome = outcome_of(assembled(text + "finish"));
  CHECK(outcome.fault == Fault::none);
  CHECK(outcome.overflows.size() == 45);
  text.clear();
  for (int i = 0; i < 300; ++i)
    text += (i == 0 ? "sync.load push_next\n" : "sync.load pop_next push_next\n") +
            std::string(i == 299 ? "sync.compute pop_prev\n" : "sync.compute pop_prev push_prev\n");
  CHECK(outcome_of(assembled(text + "finish")).ok());
}

TEST_CASE("random ordered streams are race-free, and most lose that with a pair of tokens") {
  Random random(17);
  int mutants = 0, caught = 0;
  for (int n = 0; n < 200; ++n) {
    std::vector<Instruction> stream = random_stream(random, {}, 40);
    Board board(stream, n + 1);
    Outcome outcome = run(board);
    REQUIRE_MESSAGE(outcome.ok(), text_of(describe(outcome, board.dram, board.launch)));
    std::vector<TokenPlace> places = tokens_in(stream);
    if (places.empty()) continue;
    Outcome mutant = outcome_of(without(stream, {places[random() % places.size()]}));
    ++mutants;
    caught += !mutant.races.empty() || mutant.fault == Fault::deadlock;
  }
  CHECK(caught > mutants / 2);
}
