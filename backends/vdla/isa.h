// The VDLA's instructions: stateless words of 256 bits, with the same fields for every
// configuration (docs/internals/vdla.md).
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "support/diag.h"

namespace tw::vdla {

// The sizes of one core. An SRAM address names an element, which is a row of lanes.
struct Config {
  int block_in = 16, block_out = 16;  // lanes of an activation; lanes of an accumulator
  int bus_bytes = 16;                 // one beat of the DRAM port
  int inp_depth = 2048, wgt_depth = 512, acc_depth = 2048, prm_depth = 64;  // elements
  int queue_depth = 16;   // instructions that wait before an engine
  int requant_lanes = 4;  // outputs requantized a cycle
  int out_bytes() const { return block_out; }
  bool operator==(const Config&) const = default;
};
Error verify(const Config& config);

enum class Engine : uint8_t { load, compute, store };
constexpr int kEngines = 3;
const char* engine_name(Engine engine);

enum class Space : uint8_t { inp, wgt, acc, prm, dram };
constexpr int kSpaces = 5;
const char* space_name(Space space);
int depth(const Config& config, Space sram);  // elements
int element_bytes(const Config& config, Space sram);
// inp: s8[block_in]. wgt: s8[block_out][block_in]. acc: s32[block_out]. prm: {bias s32, multiplier
// u24, shift u8}[block_out].

constexpr int kInstructionBytes = 32;
constexpr int kBases = 8;
using Word = std::array<uint64_t, 4>;  // little endian, bit 0 first

// "prev" and "next" are neighbours in the order load, compute, store. Pops come before the start,
// pushes after completion.
struct Tokens {
  bool pop_prev = false, pop_next = false, push_prev = false, push_next = false;
  bool operator==(const Tokens&) const = default;
};

// Loads z x (pad_y0 + y + pad_y1) x (pad_x0 + x + pad_x1) elements to consecutive SRAM addresses.
// Only inp has pads.
struct Load {
  Tokens tokens = {};
  Space scope = Space::inp;
  uint8_t base = 0;  // register with the address that `offset` is added to
  uint16_t sram = 0;
  uint32_t offset = 0;  // bytes; a multiple of bus_bytes, as every stride is
  uint16_t y = 1, x = 1, z = 1;
  int32_t y_stride = 0, z_stride = 0;
  uint8_t x_step = 1;  // elements from one x to the next
  uint8_t pad_y0 = 0, pad_y1 = 0, pad_x0 = 0, pad_x1 = 0;
  int8_t pad_value = 0;
  bool operator==(const Load&) const = default;
};

// q8: requantized to s8; raw: s32 as it is; sat: zero point and clamp only, to s8
enum class StoreMode : uint8_t { q8, raw, sat };
struct Store {
  Tokens tokens = {};
  StoreMode mode = StoreMode::q8;
  uint8_t base = 0;
  uint16_t acc = 0;
  uint32_t offset = 0;
  uint16_t y = 1, x = 1;
  int32_t y_stride = 0;       // DRAM bytes
  uint16_t acc_y_stride = 0;  // elements
  uint16_t prm = 0;           // q8 only
  int8_t zero_point = 0, low = -128, high = 127;
  bool operator==(const Store&) const = default;
};

// Three loops, the first outermost: acc[a] = (overwrite and all marked counters are 0 ? 0 : acc[a])
// + wgt[w] * inp[i], mod 2^32
struct GemmLoop {
  uint16_t count = 1;
  int16_t acc = 0, inp = 0, wgt = 0;  // strides
  bool operator==(const GemmLoop&) const = default;
};
struct Gemm {
  Tokens tokens = {};
  bool overwrite = false;
  uint8_t reduce = 0;  // bit l: loop l is a reduction
  uint16_t acc = 0, inp = 0, wgt = 0;
  std::array<GemmLoop, 3> loops = {};
  bool operator==(const Gemm&) const = default;
};

// dst[d] = (overwrite as above ? src[s] : op(dst[d], src[s])). src is inp, sign-extended, or acc;
// dst is acc.
enum class AluOp : uint8_t { add = 1, max = 3 };
struct AluLoop {
  uint16_t count = 1;
  int16_t dst = 0, src = 0;
  bool operator==(const AluLoop&) const = default;
};
struct Alu {
  Tokens tokens = {};
  AluOp op = AluOp::max;
  bool overwrite = false, from_inp = false;
  uint8_t reduce = 0;  // bit 0: loop 1 is a reduction, bit 1: loop 2
  uint16_t dst = 0, src = 0;
  std::array<AluLoop, 3> loops = {};
  bool operator==(const Alu&) const = default;
};

struct Sync {  // has tokens only
  Tokens tokens = {};
  Engine engine = Engine::compute;
  bool operator==(const Sync&) const = default;
};
// Waits for all engines and write responses. Every token counter must be 0.
struct Finish {
  uint32_t marker = 0;
  bool operator==(const Finish&) const = default;
};

using Instruction = std::variant<Load, Store, Gemm, Alu, Sync, Finish>;

enum class Fault : uint8_t {
  none,
  illegal,
  sram_range,
  token_overflow,
  bus,
  deadlock,
  tokens_left,
  no_finish,
  limit
};
const char* fault_name(Fault fault);

Engine engine_of(const Instruction& instruction);  // finish runs in compute
Tokens tokens_of(const Instruction& instruction);
void set_tokens(Instruction& instruction, Tokens tokens);  // not for finish

Word encode(const Instruction& instruction);
// Errors: an unknown operation, or a reserved bit that is set.
Expected<Instruction> decode(const Word& word);
// The checks that hardware makes before it starts an instruction (Fault::illegal): counts of 0,
// misaligned offsets, links that do not exist ...
Error check_fields(const Instruction& instruction, const Config& config);
// Checks that every SRAM address lies inside its memory (Fault::sram_range).
Error check_range(const Instruction& instruction, const Config& config);

// Calls fn(name, member, first bit, bits) for every field with bits of its own, without the
// header's bits.
template <class T, class Fn>
void visit_fields(T& i, Fn&& fn) {
  using Type = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Type, Load>) {
    fn("base", i.base, 12, 3), fn("sram", i.sram, 16, 16), fn("offset", i.offset, 32, 32);
    fn("y", i.y, 64, 16), fn("x", i.x, 80, 16), fn("y_stride", i.y_stride, 96, 32);
    fn("z", i.z, 128, 16), fn("z_stride", i.z_stride, 144, 32), fn("x_step", i.x_step, 176, 8);
    fn("pad_y0", i.pad_y0, 192, 8), fn("pad_y1", i.pad_y1, 200, 8), fn("pad_x0", i.pad_x0, 208, 8);
    fn("pad_x1", i.pad_x1, 216, 8), fn("pad_value", i.pad_value, 224, 8);
  } else if constexpr (std::is_same_v<Type, Store>) {
    fn("base", i.base, 12, 3), fn("acc", i.acc, 16, 16), fn("offset", i.offset, 32, 32);
    fn("y", i.y, 64, 16), fn("x", i.x, 80, 16), fn("y_stride", i.y_stride, 96, 32);
    fn("acc_y_stride", i.acc_y_stride, 128, 16), fn("prm", i.prm, 144, 16);
    fn("zero_point", i.zero_point, 160, 8), fn("low", i.low, 168, 8), fn("high", i.high, 176, 8);
  } else if constexpr (std::is_same_v<Type, Gemm>) {
    static constexpr const char* kNames[3][4] = {{"n0", "acc0", "inp0", "wgt0"},
                                                 {"n1", "acc1", "inp1", "wgt1"},
                                                 {"n2", "acc2", "inp2", "wgt2"}};
    fn("overwrite", i.overwrite, 12, 1), fn("reduce", i.reduce, 13, 3);
    fn("acc", i.acc, 16, 16), fn("inp", i.inp, 32, 16), fn("wgt", i.wgt, 48, 16);
    for (int l = 0; l < 3; ++l) {
      auto& loop = i.loops[l];
      fn(kNames[l][0], loop.count, 64 + 64 * l, 16), fn(kNames[l][1], loop.acc, 80 + 64 * l, 16);
      fn(kNames[l][2], loop.inp, 96 + 64 * l, 16), fn(kNames[l][3], loop.wgt, 112 + 64 * l, 16);
    }
  } else if constexpr (std::is_same_v<Type, Alu>) {
    static constexpr const char* kNames[3][3] = {
        {"n0", "dst0", "src0"}, {"n1", "dst1", "src1"}, {"n2", "dst2", "src2"}};
    fn("overwrite", i.overwrite, 12, 1), fn("from_inp", i.from_inp, 13, 1),
        fn("reduce", i.reduce, 14, 2);
    fn("dst", i.dst, 16, 16), fn("src", i.src, 32, 16);
    for (int l = 0; l < 3; ++l) {
      auto& loop = i.loops[l];
      fn(kNames[l][0], loop.count, 64 + 64 * l, 16), fn(kNames[l][1], loop.dst, 80 + 64 * l, 16);
      fn(kNames[l][2], loop.src, 96 + 64 * l, 16);
    }
  } else if constexpr (std::is_same_v<Type, Finish>) {
    fn("marker", i.marker, 32, 32);
  } else {
    static_assert(std::is_same_v<Type, Sync>);
  }
}

// The operations with their names in the text form; `op` and `sub` are an instruction's low bits.
struct Operation {
  const char* name;
  uint8_t op, sub;
};
constexpr std::array<Operation, 14> kOperations = {{{"load.inp", 0, 0},
                                                    {"load.wgt", 0, 1},
                                                    {"load.acc", 0, 2},
                                                    {"load.prm", 0, 3},
                                                    {"store.q8", 1, 0},
                                                    {"store.raw", 1, 1},
                                                    {"store.sat", 1, 2},
                                                    {"gemm", 2, 0},
                                                    {"alu.add", 3, 1},
                                                    {"alu.max", 3, 3},
                                                    {"sync.load", 4, 0},
                                                    {"sync.compute", 4, 1},
                                                    {"sync.store", 4, 2},
                                                    {"finish", 5, 0}}};
const Operation& operation_of(const Instruction& instruction);
Instruction blank(const Operation& operation);  // default fields

}  // namespace tw::vdla
