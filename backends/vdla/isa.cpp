#include "backends/vdla/isa.h"

#include <algorithm>
#include <bit>

namespace tw::vdla {
namespace {

constexpr int kTokenBit = 8;  // four bits from here: pop_prev, pop_next, push_prev, push_next

template <class T>
void put(Word& word, T value, int at, int bits) {
  uint64_t mask = (uint64_t{1} << bits) - 1;
  word[at / 64] |= (static_cast<uint64_t>(static_cast<int64_t>(value)) & mask) << at % 64;
}
uint64_t get(const Word& word, int at, int bits) {
  return word[at / 64] >> at % 64 & ((uint64_t{1} << bits) - 1);
}

template <class... Args>
Error bad(const char* format, Args&&... args) {
  return make_error(DiagCode::invalid_argument, format, std::forward<Args>(args)...);
}

Error check_links(const Instruction& instruction) {
  Tokens t = tokens_of(instruction);
  Engine engine = engine_of(instruction);
  if (engine == Engine::load && (t.pop_prev || t.push_prev))
    return bad("the load engine has no previous neighbour");
  if (engine == Engine::store && (t.pop_next || t.push_next))
    return bad("the store engine has no next neighbour");
  return Error::success();
}

Error check_span(const char* what, int64_t first, int64_t count, int64_t depth) {
  if (first >= 0 && first + count <= depth) return Error::success();
  return bad("{0} elements {1}..{2} lie outside its {3}", what, first, first + count - 1, depth);
}

// Checks both corners of an affine index.
Error check_affine(const char* what, int64_t base, const std::array<uint16_t, 3>& counts,
                   const std::array<int16_t, 3>& strides, int64_t depth) {
  int64_t low = base, high = base;
  for (int l = 0; l < 3; ++l) {
    int64_t reach = int64_t{strides[l]} * (counts[l] - 1);
    (reach < 0 ? low : high) += reach;
  }
  return check_span(what, low, high - low + 1, depth);
}

struct FieldCheck {
  const Config& config;
  bool aligned(int64_t bytes) const { return bytes % config.bus_bytes == 0; }

  Error operator()(const Load& i) const {
    if (!i.x || !i.y || !i.z || !i.x_step) return bad("a count or the x step is 0");
    if (!aligned(i.offset) || !aligned(i.y_stride) || !aligned(i.z_stride))
      return bad("an offset or stride is not a multiple of {0} bytes", config.bus_bytes);
    if (i.scope != Space::inp && (i.pad_y0 || i.pad_y1 || i.pad_x0 || i.pad_x1 || i.pad_value))
      return bad("only inp can be padded");
    return Error::success();
  }
  Error operator()(const Store& i) const {
    if (!i.x || !i.y) return bad("a count is 0");
    if (!aligned(i.offset) || !aligned(i.y_stride))
      return bad("an offset or stride is not a multiple of {0} bytes", config.bus_bytes);
    if (i.low > i.high) return bad("clamp {0}..{1} is empty", int{i.low}, int{i.high});
    if (i.mode != StoreMode::q8 && i.prm) return bad("only store.q8 has parameters");
    return Error::success();
  }
  Error operator()(const Gemm& i) const {
    for (const GemmLoop& loop : i.loops)
      if (!loop.count) return bad("a count is 0");
    return Error::success();
  }
  Error operator()(const Alu& i) const {
    for (const AluLoop& loop : i.loops)
      if (!loop.count) return bad("a count is 0");
    if (i.from_inp && config.block_in != config.block_out)
      return bad("inp and acc have different lanes");
    return Error::success();
  }
  Error operator()(const Sync&) const { return Error::success(); }
  Error operator()(const Finish&) const { return Error::success(); }
};

struct RangeCheck {
  const Config& config;

  Error operator()(const Load& i) const {
    int64_t rows = int64_t{i.z} * (i.pad_y0 + i.y + i.pad_y1), columns = i.pad_x0 + i.x + i.pad_x1;
    return check_span(space_name(i.scope), i.sram, rows * columns, depth(config, i.scope));
  }
  Error operator()(const Store& i) const {
    TW_TRY(check_span("acc", i.acc, int64_t{i.y - 1} * i.acc_y_stride + i.x, config.acc_depth));
    return i.mode == StoreMode::q8 ? check_span("prm", i.prm, 1, config.prm_depth)
                                   : Error::success();
  }
  Error operator()(const Gemm& i) const {
    auto [a, b, c] = i.loops;
    std::array<uint16_t, 3> counts = {a.count, b.count, c.count};
    TW_TRY(check_affine("acc", i.acc, counts, {a.acc, b.acc, c.acc}, config.acc_depth));
    TW_TRY(check_affine("inp", i.inp, counts, {a.inp, b.inp, c.inp}, config.inp_depth));
    return check_affine("wgt", i.wgt, counts, {a.wgt, b.wgt, c.wgt}, config.wgt_depth);
  }
  Error operator()(const Alu& i) const {
    auto [a, b, c] = i.loops;
    std::array<uint16_t, 3> counts = {a.count, b.count, c.count};
    TW_TRY(check_affine("acc", i.dst, counts, {a.dst, b.dst, c.dst}, config.acc_depth));
    Space source = i.from_inp ? Space::inp : Space::acc;
    return check_affine(space_name(source), i.src, counts, {a.src, b.src, c.src},
                        depth(config, source));
  }
  Error operator()(const Sync&) const { return Error::success(); }
  Error operator()(const Finish&) const { return Error::success(); }
};

}  // namespace

Error verify(const Config& c) {
  for (auto [name, value, most] : {std::tuple{"block_in", c.block_in, 256},
                                   {"block_out", c.block_out, 256},
                                   {"bus_bytes", c.bus_bytes, 32},
                                   {"inp_depth", c.inp_depth, 1 << 16},
                                   {"wgt_depth", c.wgt_depth, 1 << 16},
                                   {"acc_depth", c.acc_depth, 1 << 16},
                                   {"prm_depth", c.prm_depth, 1 << 16},
                                   {"queue_depth", c.queue_depth, 256},
                                   {"requant_lanes", c.requant_lanes, 256}})
    if (value < 2 || value > most || !std::has_single_bit(static_cast<unsigned>(value)))
      return bad("{0} = {1}: a power of two in 2..{2} is accepted", name, value, most);
  if (c.bus_bytes < 8 || c.block_in < c.bus_bytes || c.block_out < c.bus_bytes)
    return bad(
        "a beat of {0} bytes must be at least 8 bytes and no more than the lanes of an input or an "
        "output",
        c.bus_bytes);
  if (c.requant_lanes > c.block_out) return bad("more requantization lanes than outputs");
  return Error::success();
}

const char* engine_name(Engine engine) {
  switch (engine) {
    case Engine::load: return "load";
    case Engine::compute: return "compute";
    case Engine::store: return "store";
  }
  TW_UNREACHABLE("bad engine");
}

const char* space_name(Space space) {
  switch (space) {
    case Space::inp: return "inp";
    case Space::wgt: return "wgt";
    case Space::acc: return "acc";
    case Space::prm: return "prm";
    case Space::dram: return "dram";
  }
  TW_UNREACHABLE("bad space");
}

const char* fault_name(Fault fault) {
  switch (fault) {
    case Fault::none: return "none";
    case Fault::illegal: return "illegal instruction";
    case Fault::sram_range: return "SRAM address out of range";
    case Fault::token_overflow: return "token counter overflow";
    case Fault::bus: return "bus error";
    case Fault::deadlock: return "deadlock";
    case Fault::tokens_left: return "tokens left at finish";
    case Fault::no_finish: return "no finish";
    case Fault::limit: return "step limit";
  }
  TW_UNREACHABLE("bad fault");
}

int depth(const Config& config, Space sram) {
  switch (sram) {
    case Space::inp: return config.inp_depth;
    case Space::wgt: return config.wgt_depth;
    case Space::acc: return config.acc_depth;
    case Space::prm: return config.prm_depth;
    case Space::dram: break;
  }
  TW_UNREACHABLE("dram has no depth");
}

int element_bytes(const Config& config, Space sram) {
  switch (sram) {
    case Space::inp: return config.block_in;
    case Space::wgt: return config.block_in * config.block_out;
    case Space::acc: return 4 * config.block_out;
    case Space::prm: return 8 * config.block_out;
    case Space::dram: break;
  }
  TW_UNREACHABLE("dram has no elements");
}

Engine engine_of(const Instruction& instruction) {
  if (std::holds_alternative<Load>(instruction)) return Engine::load;
  if (std::holds_alternative<Store>(instruction)) return Engine::store;
  if (auto* sync = std::get_if<Sync>(&instruction)) return sync->engine;
  return Engine::compute;
}

Tokens tokens_of(const Instruction& instruction) {
  return std::visit(
      [](const auto& i) {
        if constexpr (requires { i.tokens; }) return i.tokens;
        else return Tokens{};
      },
      instruction);
}

void set_tokens(Instruction& instruction, Tokens tokens) {
  std::visit(
      [&](auto& i) {
        if constexpr (requires { i.tokens; }) i.tokens = tokens;
        else TW_UNREACHABLE("finish has no tokens");
      },
      instruction);
}

const Operation& operation_of(const Instruction& instruction) {
  struct Code {
    std::pair<int, int> operator()(const Load& i) { return {0, static_cast<int>(i.scope)}; }
    std::pair<int, int> operator()(const Store& i) { return {1, static_cast<int>(i.mode)}; }
    std::pair<int, int> operator()(const Gemm&) { return {2, 0}; }
    std::pair<int, int> operator()(const Alu& i) { return {3, static_cast<int>(i.op)}; }
    std::pair<int, int> operator()(const Sync& i) { return {4, static_cast<int>(i.engine)}; }
    std::pair<int, int> operator()(const Finish&) { return {5, 0}; }
  };
  auto [op, sub] = std::visit(Code{}, instruction);
  for (const Operation& operation : kOperations)
    if (operation.op == op && operation.sub == sub) return operation;
  TW_UNREACHABLE("operation {0}.{1}", op, sub);
}

Instruction blank(const Operation& operation) {
  switch (operation.op) {
    case 0: {
      Load i;
      i.scope = static_cast<Space>(operation.sub);
      return i;
    }
    case 1: {
      Store i;
      i.mode = static_cast<StoreMode>(operation.sub);
      return i;
    }
    case 2: return Gemm{};
    case 3: {
      Alu i;
      i.op = static_cast<AluOp>(operation.sub);
      return i;
    }
    case 4: {
      Sync i;
      i.engine = static_cast<Engine>(operation.sub);
      return i;
    }
    case 5: return Finish{};
  }
  TW_UNREACHABLE("operation {0}", operation.op);
}

Word encode(const Instruction& instruction) {
  Word word{};
  const Operation& operation = operation_of(instruction);
  put(word, operation.op, 0, 4);
  put(word, operation.sub, 4, 4);
  Tokens t = tokens_of(instruction);
  int bit = kTokenBit;
  for (bool token : {t.pop_prev, t.pop_next, t.push_prev, t.push_next}) put(word, token, bit++, 1);
  std::visit(
      [&](const auto& i) {
        visit_fields(
            i, [&](const char*, auto value, int at, int bits) { put(word, value, at, bits); });
      },
      instruction);
  return word;
}

Expected<Instruction> decode(const Word& word) {
  uint64_t op = get(word, 0, 4), sub = get(word, 4, 4);
  auto found = std::find_if(kOperations.begin(), kOperations.end(),
                            [&](const Operation& o) { return o.op == op && o.sub == sub; });
  if (found == kOperations.end()) return bad("no operation {0}.{1}", op, sub);
  Instruction instruction = blank(*found);
  if (found->op != 5)
    set_tokens(instruction, {get(word, 8, 1) != 0, get(word, 9, 1) != 0, get(word, 10, 1) != 0,
                             get(word, 11, 1) != 0});
  std::visit(
      [&](auto& i) {
        visit_fields(i, [&](const char*, auto& value, int at, int bits) {
          value = static_cast<std::remove_reference_t<decltype(value)>>(get(word, at, bits));
        });
      },
      instruction);
  if (encode(instruction) != word) return bad("{0}: a reserved bit is set", found->name);
  return instruction;
}

Error check_fields(const Instruction& instruction, const Config& config) {
  TW_TRY(check_links(instruction));
  return std::visit(FieldCheck{config}, instruction);
}

Error check_range(const Instruction& instruction, const Config& config) {
  return std::visit(RangeCheck{config}, instruction);
}

}  // namespace tw::vdla
