#include "backends/vdla/simulator.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "backends/vdla/requant.h"
#include "tests/vdla/vdla_testing.h"

using namespace tw;
using namespace tw::vdla;

namespace {

int32_t word(const Board& board, uint64_t address) {
  int32_t value;
  std::memcpy(&value, &board.dram[address], 4);
  return value;
}
void set_word(Board& board, uint64_t address, int32_t value) {
  std::memcpy(&board.dram[address], &value, 4);
}
int8_t in(const Board& board, uint64_t address) { return static_cast<int8_t>(board.dram[address]); }
constexpr uint64_t kOut = Board::kOutputs;

}  // namespace

TEST_CASE("load in three dimensions, with pads") {
  // A product with the identity shows each element of inp as an int32.
  Board board(R"(
    load.wgt offset=65536
    load.inp push_next sram=1 y=2 x=2 z=2 x_step=2 y_stride=256 z_stride=-16 offset=1024 pad_y0=1 pad_x0=1 pad_x1=1 pad_y1=1 pad_value=-9
    gemm pop_prev push_next overwrite=1 n0=33 acc0=1 inp0=1
    store.raw pop_prev base=1 x=33
    finish marker=77)");
  for (int o = 0; o < 16; ++o)
    for (int i = 0; i < 16; ++i) board.dram[65536 + 16 * o + i] = o == i;
  Outcome outcome = run(board);
  REQUIRE_MESSAGE(outcome.ok(), text_of(describe(outcome, board.dram, board.launch)));
  CHECK(outcome.marker == 77);
  CHECK(outcome.counters == Counters{5, 33, 0, 256 + 8 * 16, 33 * 64});
  for (int z = 0; z < 2; ++z)
    for (int y = 0; y < 4; ++y)
      for (int x = 0; x < 4; ++x) {
        bool inside = y >= 1 && y <= 2 && x >= 1 && x <= 2;
        int element = 1 + (z * 4 + y) * 4 + x;
        for (int lane = 0; lane < 16; ++lane) {
          int want = inside ? in(board, 1024 - 16 * z + 256 * (y - 1) + 32 * (x - 1) + lane) : -9;
          CHECK(word(board, kOut + 64 * element + 4 * lane) == want);
        }
      }
  // Memories begin with zeros.
  for (int lane = 0; lane < 16; ++lane) CHECK(word(board, kOut + 4 * lane) == 0);
}

TEST_CASE("gemm: products, strides, overwrite at the start of reductions") {
  Board board(R"(
    load.inp x=8 offset=256
    load.wgt push_next x=4 offset=4096
    gemm pop_prev overwrite=1 reduce=4 acc=5 inp=7 n0=2 acc0=-5 inp0=-4 n1=2 acc1=1 inp1=-2 n2=2 inp2=-1 wgt2=3
    gemm push_next n0=2 acc0=5
    store.raw pop_prev base=1 x=7
    finish)");
  Outcome outcome = run(board);
  REQUIRE(outcome.ok());
  CHECK(outcome.counters.gemm == 10);
  auto dot = [&](int inp, int wgt, int o) {
    int sum = 0;
    for (int i = 0; i < 16; ++i)
      sum += in(board, 256 + 16 * inp + i) * in(board, 4096 + 256 * wgt + 16 * o + i);
    return sum;
  };
  for (int o = 0; o < 16; ++o) {
    auto acc = [&](int element) { return word(board, kOut + 64 * element + 4 * o); };
    CHECK(acc(5) == 2 * 0 + dot(7, 0, o) + dot(6, 3, o) + dot(0, 0, o));
    CHECK(acc(6) == dot(5, 0, o) + dot(4, 3, o));
    CHECK(acc(0) == dot(3, 0, o) + dot(2, 3, o) + dot(0, 0, o));
    CHECK(acc(1) == dot(1, 0, o) + dot(0, 3, o));
    CHECK(acc(2) == 0);
  }
}

TEST_CASE("alu: max and add from inp and acc, wrapping") {
  Board board(R"(
    load.inp x=6 offset=512
    load.acc push_next x=3 sram=8 offset=8192
    alu.max pop_prev overwrite=1 from_inp=1 reduce=3 dst=0 n0=2 dst0=1 src0=1 n1=2 src1=2 n2=2 src2=1
    alu.add dst=8 src=9
    alu.max dst=10 src=8
    alu.add overwrite=1 from_inp=1 reduce=2 dst=2 src=0 n2=6 src2=1
    alu.max push_next from_inp=1 dst=3 src=5
    store.raw pop_prev base=1 x=4
    store.raw base=1 offset=256 acc=8 x=3
    finish)");
  set_word(board, 8192, INT32_MAX);
  set_word(board, 8192 + 64, 2);
  Outcome outcome = run(board);
  REQUIRE(outcome.ok());
  CHECK(outcome.counters.alu == 8 + 1 + 1 + 6 + 1);
  CHECK(word(board, kOut + 256) == INT32_MIN + 1);
  for (int lane = 0; lane < 16; ++lane) {
    auto x = [&](int element) -> int { return in(board, 512 + 16 * element + lane); };
    CHECK(word(board, kOut + 4 * lane) == std::max({x(0), x(1), x(2), x(3)}));
    CHECK(word(board, kOut + 64 + 4 * lane) == std::max({x(1), x(2), x(3), x(4)}));
    CHECK(word(board, kOut + 128 + 4 * lane) == x(0) + x(1) + x(2) + x(3) + x(4) + x(5));
    CHECK(word(board, kOut + 192 + 4 * lane) == std::max(0, x(5)));
    CHECK(word(board, kOut + 384 + 4 * lane) ==
          std::max(word(board, 8192 + 128 + 4 * lane), word(board, kOut + 256 + 4 * lane)));
  }
}

TEST_CASE("store: requantized and saturated, rows of both strides") {
  Board board(R"(
    load.prm sram=3 offset=4096
    load.acc push_next x=16 offset=8192
    sync.compute pop_prev push_next
    store.q8 pop_prev base=1 acc=1 y=2 x=3 acc_y_stride=5 y_stride=128 prm=3 zero_point=4 low=-100 high=90
    store.sat base=1 offset=512 acc=2 zero_point=-1 low=-7 high=9
    finish)");
  RequantParams params[16];
  for (int lane = 0; lane < 16; ++lane) {
    params[lane] = *requant_params(0.01f * static_cast<float>(lane + 1), lane * 3);
    uint64_t packed = pack(params[lane]);
    std::memcpy(&board.dram[4096 + 8 * lane], &packed, 8);
  }
  for (int i = 0; i < 256; ++i) set_word(board, 8192 + 4 * i, (i * 37 % 4001) - 2000);
  Outcome outcome = run(board);
  REQUIRE(outcome.ok());
  CHECK(outcome.counters.written_bytes == 7 * 16);
  for (int lane = 0; lane < 16; ++lane) {
    for (int y = 0; y < 2; ++y)
      for (int x = 0; x < 3; ++x)
        CHECK(in(board, kOut + 128 * y + 16 * x + lane) ==
              requantize(word(board, 8192 + 64 * (1 + 5 * y + x) + 4 * lane), params[lane], 4, -100,
                         90));
    CHECK(in(board, kOut + 512 + lane) ==
          std::clamp(word(board, 8192 + 128 + 4 * lane) - 1, -7, 9));
  }
}

TEST_CASE("faults carry the instruction and the reason") {
  auto fault = [](const std::string& text, Fault kind, uint32_t pc) {
    Board board(text);
    Outcome outcome = run(board);
    CAPTURE(text);
    CHECK(fault_name(outcome.fault) == std::string(fault_name(kind)));
    CHECK(outcome.pc == pc);
    REQUIRE(outcome.diag);
    return outcome.diag->message;
  };
  CHECK(fault("sync.load\nload.inp x=0\nfinish", Fault::illegal, 1) ==
        "instruction 1: illegal instruction: a count or the x step is 0");
  fault("gemm acc=2048\nfinish", Fault::sram_range, 0);
  fault("load.inp base=2 offset=0xfffffff0\nfinish", Fault::bus, 0);
  fault("load.inp z=2 z_stride=-16\nfinish", Fault::bus, 0);
  fault("store.raw base=2 offset=0xfffffff0\nfinish", Fault::bus, 0);
  fault("sync.load", Fault::no_finish, 1);
  fault("sync.load push_next\nfinish", Fault::tokens_left, 1);
  fault("gemm n0=65535 n1=65535 n2=65535\nfinish", Fault::limit, 0);
  std::string many;
  for (int i = 0; i < 256; ++i) many += "sync.load push_next\n";
  fault(many + "finish", Fault::token_overflow, 255);

  Board board(std::string("sync.load\ngemm pop_prev\nfinish"));
  Outcome outcome = run(board);
  CHECK(outcome.fault == Fault::deadlock);
  CHECK(outcome.pc == 1);
  REQUIRE(outcome.diag->notes.size() == 1);
  CHECK(outcome.diag->notes[0] ==
        "compute: instruction 1 waits for a token from load to compute: gemm pop_prev");
}

TEST_CASE("a full queue holds up the engines behind it") {
  // Seventeen waiting instructions fill compute's queue, so the load that would free them is never
  // fetched.
  std::string waiting;
  for (int i = 0; i < 17; ++i) waiting += i == 0 ? "sync.compute pop_prev\n" : "sync.compute\n";
  Board stuck(waiting + "sync.load push_next\nfinish");
  CHECK(run(stuck).fault == Fault::deadlock);
  CHECK(run(stuck, {.queue_depth = 32}).ok());
}

TEST_CASE("launches and configurations that no core accepts") {
  std::vector<uint8_t> dram(64);
  auto error = [&](const Config& config, const Launch& launch) {
    return error_text(simulate(config, dram, launch).takeError());
  };
  CHECK(error({}, {.instructions = 16}) == "the stream's address is not a multiple of 32 bytes");
  CHECK(error({}, {.bases = {1}}) == "a base is not a multiple of 16 bytes");
  CHECK(error({.block_in = 3}, {}).find("block_in = 3") == 0);
  CHECK(llvm::cantFail(simulate({}, dram, {.instructions = 1 << 20, .count = 1})).fault ==
        Fault::bus);
}

TEST_CASE("hostile streams end in a fault or a result") {
  Random random(11);
  int faults[16] = {};
  for (int n = 0; n < 3000; ++n) {
    std::vector<Instruction> stream;
    if (n % 2) stream = random_stream(random, {}, 12);
    else stream = {random_instruction(random, {}), random_instruction(random, {}), Finish{}};
    Board board(stream, n + 1, n % 4 == 1 ? 16384 : Board::kData);
    size_t code = board.dram.size() - stream.size() * kInstructionBytes;
    if (n % 4 == 3)
      for (int i = 0; i < 3; ++i)
        board.dram[code + random() % (stream.size() * kInstructionBytes)] ^= 1 << random() % 8;
    ++faults[static_cast<int>(run(board, {}, {.most_steps = n % 8 == 5 ? 30u : 100000u}).fault)];
  }
  for (Fault fault :
       {Fault::illegal, Fault::sram_range, Fault::bus, Fault::deadlock, Fault::limit}) {
    CAPTURE(std::string(fault_name(fault)));
    CHECK(faults[static_cast<int>(fault)] > 0);
  }
}
