#include "backends/vdla/isa.h"

#include <doctest/doctest.h>

#include "tests/vdla/vdla_testing.h"

using namespace tw;
using namespace tw::vdla;

namespace {

std::string refusal(const std::string& text, const Config& config = {}) {
  Instruction instruction = assembled(text)[0];
  Error error = check_fields(instruction, config);
  return error ? error_text(std::move(error)) : error_text(check_range(instruction, config));
}

}  // namespace

TEST_CASE("fields stand where the page says") {
  Word load = encode(
      assembled("load.wgt pop_next push_next base=5 sram=0x1234 offset=0x89abcde0 y=2 x=3 "
                "y_stride=-16 z=4 z_stride=32 x_step=7")[0]);
  CHECK(load == Word{0x89abcde012345a10, 0xfffffff000030002, 0x0007000000200004, 0});
  Word pads = encode(assembled("load.inp pad_y0=1 pad_y1=2 pad_x0=3 pad_x1=4 pad_value=-1")[0]);
  CHECK(pads[3] == 0xff04030201);
  Word store = encode(assembled(
      "store.raw pop_prev push_prev acc=9 acc_y_stride=7 zero_point=-2 low=-3 high=4")[0]);
  CHECK(store == Word{0x0000000000090511, 0x0000000000010001, 0x0004fdfe00000007, 0});
  Word gemm = encode(
      assembled("gemm pop_prev pop_next push_prev push_next overwrite=1 reduce=5 acc=1 inp=2 wgt=3 "
                "n0=4 acc0=-1 n2=9 wgt2=8")[0]);
  CHECK(gemm == Word{0x000300020001bf02, 0x00000000ffff0004, 1, 0x0008000000000009});
  Word alu = encode(
      assembled("alu.max overwrite=1 from_inp=1 reduce=2 dst=3 src=4 n1=5 dst1=6 src1=7")[0]);
  CHECK(alu == Word{0x000000040003b033, 1, 0x0000000700060005, 1});
  CHECK(encode(assembled("sync.store pop_prev")[0]) == Word{0x124, 0, 0, 0});
  CHECK(encode(assembled("finish marker=7")[0]) == Word{0x0000000700000005, 0, 0, 0});
}

TEST_CASE("random instructions survive encoding and text") {
  Random random(3);
  for (int n = 0; n < 20000; ++n) {
    Instruction instruction = random_instruction(random, {});
    std::string text = disassemble(instruction);
    CAPTURE(text);
    auto decoded = decode(encode(instruction));
    REQUIRE(decoded);
    REQUIRE(*decoded == instruction);
    auto parsed = assemble(text);
    REQUIRE(parsed);
    REQUIRE(parsed->at(0) == instruction);
  }
}

TEST_CASE("every bit is a field or reserved, and never both") {
  for (const Operation& operation : kOperations) {
    Word plain = encode(blank(operation));
    for (int bit = 8; bit < 256; ++bit) {
      Word word = plain;
      word[bit / 64] ^= uint64_t{1} << bit % 64;
      auto decoded = decode(word);
      CAPTURE(operation.name);
      CAPTURE(bit);
      if (decoded) CHECK(!(*decoded == blank(operation)));
      else CHECK(error_text(decoded.takeError()).find("reserved bit") != std::string::npos);
    }
  }
  int known = 0;
  for (uint64_t code = 0; code < 256; ++code) {
    auto decoded = decode(Word{code, 0, 0, 0});
    if (decoded) ++known;
    else llvm::consumeError(decoded.takeError());
  }
  CHECK(known == static_cast<int>(kOperations.size()));
}

TEST_CASE("what the hardware refuses") {
  CHECK(refusal("load.inp").empty());
  CHECK(refusal("load.inp pop_prev") == "the load engine has no previous neighbour");
  CHECK(refusal("store.raw push_next") == "the store engine has no next neighbour");
  CHECK(refusal("sync.load push_prev") == "the load engine has no previous neighbour");
  CHECK(refusal("load.inp x=0") == "a count or the x step is 0");
  CHECK(refusal("load.inp x_step=0") == "a count or the x step is 0");
  CHECK(refusal("store.q8 y=0") == "a count is 0");
  CHECK(refusal("gemm n1=0") == "a count is 0");
  CHECK(refusal("alu.add n2=0") == "a count is 0");
  CHECK(refusal("load.inp offset=8") == "an offset or stride is not a multiple of 16 bytes");
  CHECK(refusal("store.q8 y_stride=-8") == "an offset or stride is not a multiple of 16 bytes");
  CHECK(refusal("load.wgt pad_x0=1") == "only inp can be padded");
  CHECK(refusal("store.raw low=3 high=2") == "clamp 3..2 is empty");
  CHECK(refusal("store.raw prm=1") == "only store.q8 has parameters");
  CHECK(refusal("alu.max from_inp=1", {.block_out = 32}) == "inp and acc have different lanes");
}

TEST_CASE("addresses outside a memory") {
  CHECK(refusal("load.inp sram=2047").empty());
  CHECK(refusal("load.inp sram=2047 x=2") == "inp elements 2047..2048 lie outside its 2048");
  CHECK(refusal("load.inp z=2 y=8 x=120 pad_y0=1 pad_x1=8") ==
        "inp elements 0..2303 lie outside its 2048");
  CHECK(refusal("load.wgt sram=512") == "wgt elements 512..512 lie outside its 512");
  CHECK(refusal("load.prm x=65535 y=65535 z=65535").find("outside its 64") != std::string::npos);
  CHECK(refusal("gemm n0=3 acc0=-1 acc=2").empty());
  CHECK(refusal("gemm n0=3 acc0=-1 acc=1") == "acc elements -1..1 lie outside its 2048");
  CHECK(refusal("gemm n0=65535 n1=65535 n2=65535 wgt0=32767 wgt1=32767 wgt2=-32768")
            .find("wgt elements") == 0);
  CHECK(refusal("alu.max n0=2 src0=2047 src=1") == "acc elements 1..2048 lie outside its 2048");
  CHECK(refusal("alu.max from_inp=1 n0=2 src0=2047").empty());
  CHECK(refusal("store.raw y=2 x=2 acc_y_stride=2047") ==
        "acc elements 0..2048 lie outside its 2048");
  CHECK(refusal("store.q8 prm=64") == "prm elements 64..64 lie outside its 64");
}

TEST_CASE("assembly that does not parse") {
  auto error = [](const char* text) { return error_text(assemble(text, "s").takeError()); };
  CHECK(error("sync.load\n  gem n0=1") == "s:2:3: no instruction 'gem'");
  CHECK(error("gemm n3=1") == "s:1:6: gemm has no field 'n3'");
  CHECK(error("gemm n0=65536") == "s:1:9: 65536 does not fit in 'n0'");
  CHECK(error("gemm acc0=-32769") == "s:1:11: -32769 does not fit in 'acc0'");
  CHECK(error("gemm acc=-1") == "s:1:10: -1 does not fit in 'acc'");
  CHECK(error("load.inp base=8") == "s:1:15: 8 does not fit in 'base'");
  CHECK(error("gemm n0 4") == "s:1:9: expected '=', found '4'");
  CHECK(error("gemm 4") == "s:1:6: expected a token or a field, found '4'");
  CHECK(error("finish pop_prev") == "s:1:8: finish has no tokens");
  CHECK(assembled("; nothing\n").empty());
}

TEST_CASE("configurations") {
  CHECK(!verify(Config{}));
  CHECK(!verify(Config{.block_out = 8, .bus_bytes = 8}));
  CHECK(error_text(verify(Config{.block_in = 24})) ==
        "block_in = 24: a power of two in 2..256 is accepted");
  CHECK(error_text(verify(Config{.queue_depth = 1})) ==
        "queue_depth = 1: a power of two in 2..256 is accepted");
  CHECK(error_text(verify(Config{.block_out = 8})).find("a beat of 16 bytes") == 0);
  CHECK(error_text(verify(Config{.requant_lanes = 32})) ==
        "more requantization lanes than outputs");
}
