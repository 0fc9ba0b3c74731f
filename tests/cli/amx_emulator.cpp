#include "tests/cli/amx_emulator.h"

#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#endif

namespace tw::test {
namespace {

std::atomic<int64_t> multiplied = 0;

#if defined(__x86_64__) && defined(__linux__)

constexpr int kTiles = 8, kTileRows = 16, kRowBytes = 64;

struct Tile {
  int rows = 0, bytes = 0;  // as configured; bytes of a row
  std::array<std::array<uint8_t, kRowBytes>, kTileRows> data = {};

  template <typename T>
  T at(int row, int i) const {
    T value;
    std::memcpy(&value, &data[row][i * sizeof(T)], sizeof value);
    return value;
  }
  template <typename T>
  void set(int row, int i, T value) {
    std::memcpy(&data[row][i * sizeof(T)], &value, sizeof value);
  }
};

struct State {
  bool configured = false;
  std::array<Tile, kTiles> tiles;
};
thread_local State state;

// The legacy prefix that VEX stands for.
enum Prefix : uint8_t { kNone, k66, kF3, kF2 };

// An instruction with a three-byte VEX prefix in map 0F38, and an operand that is a register or
// memory.
struct Instruction {
  uint8_t opcode = 0, modrm = 0;
  Prefix prefix = kNone;
  int second = 0;  // the register in VEX.vvvv
  int reg = 0, rm = 0;
  bool registers = false;            // false: the operand is in memory
  uintptr_t address = 0, place = 0;  // operand's address, and the same without the index
  int64_t stride = 0;                // the scaled index
  int length = 0;
};

// Returns the general register of an instruction's register number.
greg_t general(const ucontext_t& context, int number) {
  constexpr std::array<int, 16> kOrder = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                          REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                          REG_R12, REG_R13, REG_R14, REG_R15};
  return context.uc_mcontext.gregs[kOrder[number]];
}

std::optional<Instruction> decode(const ucontext_t& context) {
  const auto begin = static_cast<uintptr_t>(context.uc_mcontext.gregs[REG_RIP]);
  const auto* code = reinterpret_cast<const uint8_t*>(begin);
  constexpr uint8_t kVex3 = 0xC4, kMap0F38 = 2;
  if (code[0] != kVex3 || (code[1] & 31) != kMap0F38 || (code[2] & 0x84) != 0) return std::nullopt;
  const auto high = [&](int bit) { return (code[1] >> bit & 1) == 0 ? 8 : 0; };  // inverted
  Instruction i;
  i.prefix = static_cast<Prefix>(code[2] & 3);
  i.second = ~code[2] >> 3 & 15;
  i.opcode = code[3], i.modrm = code[4];
  const int mod = i.modrm >> 6;
  i.reg = (i.modrm >> 3 & 7) + high(7), i.rm = (i.modrm & 7) + high(5);
  i.registers = mod == 3;
  i.length = 5;
  if (i.registers) return i;
  uintptr_t base = 0;
  bool based = true;
  if ((i.modrm & 7) == 4) {
    const uint8_t sib = code[i.length++];
    const int index = (sib >> 3 & 7) + high(6);
    if (index != 4) i.stride = general(context, index) << (sib >> 6);
    based = mod != 0 || (sib & 7) != 5;
    if (based) base = general(context, (sib & 7) + high(5));
  } else if (mod == 0 && (i.modrm & 7) == 5) {
    based = false;
    base = begin + i.length + 4;  // relative to the next instruction
  } else {
    base = general(context, i.rm);
  }
  if (mod == 1) {
    base += static_cast<int8_t>(code[i.length]);
    i.length += 1;
  } else if (mod == 2 || !based) {
    int32_t distance;
    std::memcpy(&distance, code + i.length, sizeof distance);
    base += distance;
    i.length += 4;
  }
  i.place = base, i.address = base + i.stride;
  return i;
}

// Returns false for an unknown palette or sizes beyond the limits.
bool configure(uintptr_t from) {
  std::array<uint8_t, 64> bytes;
  std::memcpy(bytes.data(), reinterpret_cast<const void*>(from), bytes.size());
  state = {};
  if (bytes[0] == 0) return true;
  if (bytes[0] != 1) return false;
  for (int t = 0; t < kTiles; ++t) {
    Tile& tile = state.tiles[t];
    tile.bytes = bytes[16 + 2 * t] | bytes[17 + 2 * t] << 8, tile.rows = bytes[48 + t];
    if (tile.bytes > kRowBytes || tile.rows > kTileRows) return false;
  }
  state.configured = true;
  return true;
}

void load(const Instruction& i) {
  Tile& tile = state.tiles[i.reg];
  tile.data = {};
  for (int row = 0; row < tile.rows; ++row)
    std::memcpy(tile.data[row].data(), reinterpret_cast<const void*>(i.place + row * i.stride),
                tile.bytes);
}

void store(const Instruction& i) {
  const Tile& tile = state.tiles[i.reg];
  for (int row = 0; row < tile.rows; ++row)
    std::memcpy(reinterpret_cast<void*>(i.place + row * i.stride), tile.data[row].data(),
                tile.bytes);
}

// Adds products of bytes, four at a time. Sums wrap around.
template <typename Left, typename Right>
void add_bytes(Tile& sums, const Tile& left, const Tile& right) {
  for (int row = 0; row < sums.rows; ++row)
    for (int column = 0; column < sums.bytes / 4; ++column) {
      auto sum = sums.at<uint32_t>(row, column);
      for (int k = 0; k < left.bytes; ++k)
        sum += static_cast<uint32_t>(left.at<Left>(row, k) *
                                     right.at<Right>(k / 4, column * 4 + k % 4));
      sums.set(row, column, sum);
    }
}

// Returns 0 for subnormal numbers, as the processor does.
float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0F, x) : x; }
struct Bf16 {
  uint16_t bits;
};
float widened(Bf16 x) { return flushed(std::bit_cast<float>(uint32_t{x.bits} << 16)); }
float widened(_Float16 x) { return x; }

// Sums the even and the odd products apart, each from 0 and rounded at each step, and adds both
// sums to the tile.
template <typename Number>
void add_floats(Tile& sums, const Tile& left, const Tile& right) {
  for (int row = 0; row < sums.rows; ++row)
    for (int column = 0; column < sums.bytes / 4; ++column) {
      std::array<float, 2> parts = {};
      for (int k = 0; k < left.bytes / 2; ++k)
        parts[k % 2] = flushed(std::fma(widened(left.at<Number>(row, k)),
                                        widened(right.at<Number>(k / 2, column * 2 + k % 2)),
                                        parts[k % 2]));
      const float both = flushed(parts[0] + parts[1]);
      sums.set(row, column, flushed(flushed(sums.at<float>(row, column)) + both));
    }
}

// Computes reg += rm * second. Returns false for operands that the processor refuses too.
bool multiply(const Instruction& i) {
  if (!state.configured || i.reg >= kTiles || i.rm >= kTiles || i.second >= kTiles ||
      i.reg == i.rm || i.reg == i.second || i.rm == i.second)
    return false;
  Tile& sums = state.tiles[i.reg];
  const Tile &left = state.tiles[i.rm], &right = state.tiles[i.second];
  if (sums.rows != left.rows || sums.bytes != right.bytes || left.bytes / 4 != right.rows)
    return false;
  constexpr uint8_t kBytes = 0x5E, kFloats = 0x5C;
  if (i.opcode == kFloats && i.prefix == kF3) add_floats<Bf16>(sums, left, right);
  else if (i.opcode == kFloats && i.prefix == kF2) add_floats<_Float16>(sums, left, right);
  else if (i.opcode != kBytes) return false;
  else if (i.prefix == kF2) add_bytes<int8_t, int8_t>(sums, left, right);
  else if (i.prefix == kF3) add_bytes<int8_t, uint8_t>(sums, left, right);
  else if (i.prefix == k66) add_bytes<uint8_t, int8_t>(sums, left, right);
  else add_bytes<uint8_t, uint8_t>(sums, left, right);
  ++multiplied;
  return true;
}

bool execute(const Instruction& i) {
  constexpr uint8_t kState = 0x49, kMoves = 0x4B;
  if (i.opcode == kState && !i.registers && i.prefix == kNone) return configure(i.address);
  if (i.opcode == kState && i.registers && i.prefix == kNone) {
    state = {};
    return true;
  }
  if (!state.configured || i.reg >= kTiles) return false;
  if (i.opcode == kState && i.registers && i.prefix == kF2) {
    state.tiles[i.reg].data = {};
    return true;
  }
  if (i.opcode == kMoves && !i.registers && (i.prefix == kF2 || i.prefix == k66)) {
    load(i);
    return true;
  }
  if (i.opcode == kMoves && !i.registers && i.prefix == kF3) {
    store(i);
    return true;
  }
  return i.registers && multiply(i);
}

// Ends the program, as without an emulator, on an instruction that is not known here.
void refused(int, siginfo_t*, void* at) {
  auto& context = *static_cast<ucontext_t*>(at);
  const std::optional<Instruction> instruction = decode(context);
  if (instruction && execute(*instruction))
    context.uc_mcontext.gregs[REG_RIP] += instruction->length;
  else std::signal(SIGILL, SIG_DFL);
}

#endif

}  // namespace

#if defined(__x86_64__) && defined(__linux__)

// True if the processor has tiles. Then it runs their instructions itself, and the emulator stays
// idle. The kernel lets a process use tiles only after this request.
static bool processor_has_tiles() {
  constexpr long kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  static const bool has = syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
  return has;
}

AmxEmulator::AmxEmulator() {
  if (processor_has_tiles()) return;
  struct sigaction now = {};
  now.sa_sigaction = refused;
  now.sa_flags = SA_SIGINFO;
  sigaction(SIGILL, &now, &before_);
}

AmxEmulator::~AmxEmulator() {
  if (!processor_has_tiles()) sigaction(SIGILL, &before_, nullptr);
}

bool AmxEmulator::has(const std::string& feature) {
  return !processor_has_tiles() && (feature == "amx-tile" || feature == "amx-int8" ||
                                    feature == "amx-bf16" || feature == "amx-fp16");
}

#else

AmxEmulator::AmxEmulator() = default;
AmxEmulator::~AmxEmulator() = default;
bool AmxEmulator::has(const std::string&) { return false; }

#endif

int64_t AmxEmulator::products() { return multiplied; }

}  // namespace tw::test

#ifdef TW_AMX_PRELOADED  // a library that LD_PRELOAD loads into a program
static const tw::test::AmxEmulator preloaded;
#endif
