// The SystemVerilog core against the simulator, in memory byte for byte, counters and faults; and
// its synthesis front end.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "backends/vdla/requant.h"
#include "backends/vdla/rtl_core.h"
#include "tests/vdla/vdla_testing.h"

using namespace tw;
using namespace tw::vdla;

TEST_CASE("the core passes Yosys") {
#ifdef TW_YOSYS
  std::string files;
  for (const auto& entry : std::filesystem::directory_iterator(TW_SOURCE_DIR "/backends/vdla/rtl"))
    if (entry.path().extension() == ".sv") files += " " + entry.path().string();
  std::string command = TW_YOSYS " -q -e . -p 'read_verilog -sv" + files +
                        "; hierarchy -check -top vdla_core; proc; check -assert'";
  CHECK(std::system(command.c_str()) == 0);
#else
  MESSAGE("skipped: no yosys");
#endif
}

#ifndef TW_VDLA_RTL
TEST_CASE("the simulated core") { MESSAGE("skipped: no verilator"); }
#else
namespace {

std::shared_ptr<RtlCore> opened(const char* library) {
  return llvm::cantFail(RtlCore::open(library));
}

// Runs one stream on both. The RTL's DRAM comes back in `board`.
struct Both {
  Outcome iss, rtl;
  bool same_memory;
  Cycles cycles;
};
Both both(Board& board, const RtlCore& core, const RtlOptions& options = {}) {
  Board other = board;
  Both result;
  result.iss = run(other, core.config());
  result.rtl = llvm::cantFail(core.run(board.dram, board.launch, options, &result.cycles));
  result.same_memory = board.dram == other.dram;
  return result;
}

void compare_random(const char* library, uint32_t seed, int streams) {
  std::shared_ptr<RtlCore> core = opened(library);
  Random random(seed);
  uint64_t steps = 0;
  for (int n = 0; n < streams; ++n) {
    std::vector<Instruction> stream = random_stream(random, core->config(), 60);
    Board board(stream, n + 1);
    RtlOptions options{.dram = {static_cast<uint32_t>(pick(random, 1, 60)),
                                static_cast<uint32_t>(pick(random, 1, 32))},
                       .jitter = static_cast<uint32_t>(pick(random, 0, 1) * pick(random, 0, 200)),
                       .seed = static_cast<uint32_t>(random())};
    Both result = both(board, *core, options);
    CAPTURE(n);
    REQUIRE_MESSAGE(result.iss.ok(), text_of(describe(result.iss, board.dram, board.launch)));
    REQUIRE(std::string(fault_name(result.rtl.fault)) == "none");
    CHECK(result.rtl.marker == 0x1234);
    CHECK(result.rtl.counters.instructions == result.iss.counters.instructions);
    CHECK(result.rtl.counters.read_bytes == result.iss.counters.read_bytes);
    CHECK((result.rtl.counters == result.iss.counters));
    REQUIRE(result.same_memory);
    steps += result.iss.counters.gemm + result.iss.counters.alu;
  }
  CHECK(steps > static_cast<uint64_t>(streams) * 100);
}

}  // namespace

TEST_CASE("the core's sizes are its parameters") {
  CHECK(opened(TW_VDLA_RTL)->config() == Config{});
  Config small{.block_out = 8,
               .bus_bytes = 8,
               .inp_depth = 64,
               .wgt_depth = 32,
               .acc_depth = 64,
               .prm_depth = 16,
               .queue_depth = 2,
               .requant_lanes = 8};
  CHECK(opened(TW_VDLA_RTL_SMALL)->config() == small);
  CHECK(error_text(RtlCore::open("/nowhere.so").takeError()).find("cannot be opened") !=
        std::string::npos);
}

TEST_CASE("random race-free streams give the simulator's memory") {
  compare_random(TW_VDLA_RTL, 23, 120);
}
TEST_CASE("and so does a core of other sizes") { compare_random(TW_VDLA_RTL_SMALL, 29, 120); }

TEST_CASE("virtual threads hide DRAM latency, and the predicted cycles are the core's") {
  std::shared_ptr<RtlCore> core = opened(TW_VDLA_RTL);
  GemmShape shape{.tiles = 6, .steps = 4, .pixels = 128, .k_blocks = 4, .out_blocks = 8};
  double cycles[3] = {};
  for (int threads : {1, 2}) {
    std::vector<Instruction> stream = gemm_stream(shape, threads);
    Board board(stream, 1, 1 << 20);
    board.launch.bases[1] = 1 << 19;
    Both result = both(board, *core);
    REQUIRE(result.iss.ok());
    REQUIRE(result.rtl.ok());
    CHECK(result.same_memory);
    double total = cycles[threads] = static_cast<double>(result.cycles.total),
           steps = static_cast<double>(result.rtl.counters.gemm);
    double predicted = static_cast<double>(llvm::cantFail(predict_cycles({}, stream, {})).total);
    CHECK(predicted == doctest::Approx(total).epsilon(0.03));
    MESSAGE(llvm::formatv("GEMM of 768 x 256 x 128, {0} virtual thread{1}: {2} cycles ({3} "
                          "predicted), the array works {4:F1} % of them",
                          threads, threads == 1 ? "" : "s", total, predicted, 100 * steps / total)
                .str());
  }
  CHECK(cycles[2] < cycles[1]);
}

TEST_CASE("predicted cycles of random streams") {
  std::shared_ptr<RtlCore> core = opened(TW_VDLA_RTL);
  Random random(41);
  double worst = 0, sum = 0;
  for (int n = 0; n < 60; ++n) {
    std::vector<Instruction> stream = random_stream(random, {}, 100);
    DramModel dram{static_cast<uint32_t>(pick(random, 4, 100)),
                   static_cast<uint32_t>(1 << pick(random, 1, 5))};
    Board board(stream, n + 1);
    Cycles cycles;
    REQUIRE(llvm::cantFail(core->run(board.dram, board.launch, {.dram = dram}, &cycles)).ok());
    double error = static_cast<double>(llvm::cantFail(predict_cycles({}, stream, dram)).total) /
                       static_cast<double>(cycles.total) -
                   1;
    worst = std::fmax(worst, std::fabs(error));
    sum += std::fabs(error);
  }
  MESSAGE(llvm::formatv("60 random streams: off by {0:F1} % on average, {1:F1} % at most",
                        100 * sum / 60, 100 * worst)
              .str());
  CHECK(worst < 0.15);
}

TEST_CASE("the core's faults are the simulator's") {
  std::shared_ptr<RtlCore> core = opened(TW_VDLA_RTL);
  std::string overflow;
  for (int i = 0; i < 256; ++i) overflow += "sync.load push_next\n";
  for (const std::string& text :
       {std::string("sync.load\nload.inp x=0\nfinish"),
        std::string("gemm acc=2047 n2=2 acc2=1\nfinish"),
        std::string("gemm acc=1 n0=3 acc0=-1\nfinish"),
        std::string("gemm inp=2047 n1=2 inp1=1\nfinish"),
        std::string("gemm wgt=511 n0=2 wgt0=1\nfinish"), std::string("alu.max src=2048\nfinish"),
        std::string("alu.add from_inp=1 src=5 n2=7 src2=-1\nfinish"),
        std::string("load.wgt sram=511 x=2\nfinish"),
        std::string("load.inp sram=2046 pad_x1=2\nfinish"),
        std::string("store.raw acc=2000 x=49 base=1\nfinish"),
        std::string("store.q8 prm=64 base=1\nfinish"),
        std::string("load.inp base=2 offset=0xfffffff0\nfinish"),
        std::string("load.inp z=2 z_stride=-16\nfinish"),
        std::string("store.raw base=2 offset=0xfffffff0\nfinish"), std::string("sync.load"),
        std::string("sync.load push_next\nfinish"), overflow + "finish",
        std::string("sync.load\ngemm pop_prev\nfinish"),
        std::string("store.raw pop_prev base=1\nload.inp pop_next\nfinish")}) {
    Board board(text);
    Both result = both(board, *core, {.watchdog = 500});
    CAPTURE(text);
    CHECK(std::string(fault_name(result.rtl.fault)) == fault_name(result.iss.fault));
    CHECK(result.iss.fault != Fault::none);
    CHECK(result.rtl.pc == result.iss.pc);
  }
}

TEST_CASE("the core refuses the same bits") {
  std::shared_ptr<RtlCore> core = opened(TW_VDLA_RTL);
  Random random(31);
  int illegal = 0, legal = 0;
  for (int n = 0; n < 400; ++n) {
    Instruction instruction = random_stream(random, {}, 1)[0];
    if (!std::holds_alternative<Finish>(instruction)) set_tokens(instruction, {});
    Board board({instruction, Finish{}}, n + 1);
    int bit = pick(random, 0, 255);
    if (bit >= 8 && bit < 12) continue;  // a changed token would only deadlock
    board.dram[board.launch.instructions + bit / 8] ^= 1 << bit % 8;
    Board other = board;
    Outcome iss = run(other, {}, {.most_steps = 100000});
    if (iss.fault == Fault::limit) continue;
    Outcome rtl = llvm::cantFail(
        core->run(board.dram, board.launch, {.watchdog = 500, .most_cycles = 4000000}));
    CAPTURE(n);
    CAPTURE(bit);
    // The simulator checks the SRAM range before it starts; the core may reach the end of DRAM
    // first.
    if (!(iss.fault == Fault::sram_range && rtl.fault == Fault::bus))
      CHECK(std::string(fault_name(rtl.fault)) == fault_name(iss.fault));
    CHECK(rtl.pc == iss.pc);
    (iss.fault == Fault::illegal ? illegal : legal) += 1;
  }
  CHECK(illegal > 50);
  CHECK(legal > 50);
}

TEST_CASE("the core requantizes thresholds and ties as the simulator") {
  std::shared_ptr<RtlCore> core = opened(TW_VDLA_RTL);
  Random random(37);
  constexpr int kRows = 2000;
  for (int n = 0; n < 12; ++n) {
    Board board(
        "load.prm base=0\nload.acc push_next base=0 offset=1024 x=2000 sram=16\nsync.compute "
        "pop_prev push_next\n"
        "store.q8 pop_prev base=1 acc=16 x=2000 zero_point=" +
        std::to_string(pick(random, -128, 127)) + "\nfinish");
    for (int lane = 0; lane < 16; ++lane) {
      float scale = lane < 4
                        ? std::ldexp(1.0f, -pick(random, 1, 20))
                        : std::exp2(std::uniform_real_distribution<float>(-20.0f, 1.0f)(random));
      RequantParams params = *requant_params(scale, pick(random, -1000, 1000));
      if (n == 11)
        params = {static_cast<int32_t>(random()), static_cast<uint32_t>(random() & 0xffffff),
                  static_cast<uint8_t>(random())};
      uint64_t packed = pack(params);
      std::memcpy(&board.dram[8 * lane], &packed, 8);
      for (int row = 0; row < kRows; ++row) {
        double at = (pick(random, -258, 258) + 0.5) / static_cast<double>(scale) - params.bias;
        int32_t acc = n == 11 ? static_cast<int32_t>(random())
                              : static_cast<int32_t>(
                                    std::llround(std::fmax(std::fmin(at, 2.1e9), -2.1e9))) +
                                    pick(random, -1, 1);
        std::memcpy(&board.dram[1024 + 64 * row + 4 * lane], &acc, 4);
      }
    }
    Board resized = board;
    Both result = both(resized, *core);
    REQUIRE(result.iss.ok());
    REQUIRE(result.rtl.ok());
    CHECK(result.same_memory);
  }
}
#endif
