#include "tests/vdla/vdla_testing.h"

#include <algorithm>
#include <array>

namespace tw::vdla {

Board::Board(const std::vector<Instruction>& stream, uint32_t seed, uint64_t data_bytes)
    : dram(data_bytes) {
  Random random(seed);
  for (uint8_t& byte : dram) byte = static_cast<uint8_t>(random());
  std::vector<uint8_t> code = to_bytes(stream);
  launch = {data_bytes, static_cast<uint32_t>(stream.size()), {0, kOutputs, 0}};
  dram.insert(dram.end(), code.begin(), code.end());
}
Board::Board(const std::string& assembly, uint32_t seed) : Board(assembled(assembly), seed) {}

Outcome run(Board& board, const Config& config, const SimulatorOptions& options) {
  return llvm::cantFail(simulate(config, board.dram, board.launch, options));
}
std::vector<Instruction> assembled(const std::string& text) {
  return llvm::cantFail(assemble(text, "test"));
}

std::string text_of(const std::vector<Diag>& diags) {
  std::string text;
  for (const Diag& diag : diags) text += to_string(diag) + "\n";
  return text;
}

int pick(Random& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

namespace {

// Sets the field to a random value that fits its bits, often a small one.
template <class T>
void random_field(Random& random, T& value, int bits) {
  uint64_t raw = (uint64_t{random()} << 32 | random()) >> pick(random, 0, bits - 1);
  uint64_t mask = (uint64_t{1} << bits) - 1;
  value = static_cast<T>(raw & mask);
}

Tokens random_tokens(Random& random, Engine engine) {
  bool prev = engine != Engine::load, next = engine != Engine::store;
  auto coin = [&] { return pick(random, 0, 1) == 1; };
  return {prev && coin(), next && coin(), prev && coin(), next && coin()};
}

}  // namespace

Instruction random_instruction(Random& random, const Config& config) {
  for (;;) {
    Instruction instruction = blank(kOperations[pick(random, 0, kOperations.size() - 1)]);
    if (!std::holds_alternative<Finish>(instruction))
      set_tokens(instruction, random_tokens(random, engine_of(instruction)));
    std::visit(
        [&](auto& i) {
          visit_fields(i, [&](const char*, auto& value, int, int bits) {
            random_field(random, value, bits);
          });
          if constexpr (requires {
                          i.offset;
                          i.y_stride;
                        }) {
            i.offset -= i.offset % config.bus_bytes;
            i.y_stride -= i.y_stride % config.bus_bytes;
          }
        },
        instruction);
    if (auto* load = std::get_if<Load>(&instruction)) {
      load->z_stride -= load->z_stride % config.bus_bytes;
      if (load->scope != Space::inp)
        load->pad_x0 = load->pad_x1 = load->pad_y0 = load->pad_y1 = 0, load->pad_value = 0;
    }
    if (auto* store = std::get_if<Store>(&instruction); store && store->mode != StoreMode::q8)
      store->prm = 0;
    if (Error error = check_fields(instruction, config)) llvm::consumeError(std::move(error));
    else return instruction;
  }
}

namespace {

constexpr int kSlots = 12;  // few elements of each SRAM, so that random streams conflict often

struct Range {
  Space space;
  int64_t low, high;  // inclusive
  bool write;
};
bool conflict(const Range& a, const Range& b) {
  return a.space == b.space && (a.write || b.write) && a.low <= b.high && b.low <= a.high;
}

Load random_load(Random& random, const Config& config) {
  Load i;
  i.scope = static_cast<Space>(pick(random, 0, 3));
  int bytes = element_bytes(config, i.scope);
  int most = i.scope == Space::inp ? 3 : 1;
  i.x = pick(random, 1, most), i.y = pick(random, 1, most), i.z = pick(random, 1, 2);
  i.x_step = pick(random, 1, 2);
  if (i.scope == Space::inp && pick(random, 0, 1)) {
    i.pad_x0 = pick(random, 0, 1), i.pad_x1 = pick(random, 0, 1), i.pad_y0 = pick(random, 0, 1),
    i.pad_y1 = pick(random, 0, 1);
    i.pad_value = static_cast<int8_t>(pick(random, -128, 127));
  }
  i.base = pick(random, 0, 1);
  i.offset = pick(random, 0, 64) * config.bus_bytes + 16384;
  i.y_stride = pick(random, -8, 8) * bytes, i.z_stride = pick(random, -8, 8) * bytes;
  i.sram = pick(random, 0, kSlots - 1);
  return i;
}

Gemm random_gemm(Random& random) {
  Gemm i;
  i.overwrite = pick(random, 0, 1), i.reduce = pick(random, 0, 7);
  i.acc = pick(random, 4, 8), i.inp = pick(random, 4, 8), i.wgt = pick(random, 4, 8);
  for (GemmLoop& loop : i.loops)
    loop = {static_cast<uint16_t>(pick(random, 1, 3)), static_cast<int16_t>(pick(random, -1, 1)),
            static_cast<int16_t>(pick(random, -1, 1)), static_cast<int16_t>(pick(random, -1, 1))};
  return i;
}

Alu random_alu(Random& random, const Config& config) {
  Alu i;
  i.op = pick(random, 0, 1) ? AluOp::add : AluOp::max;
  i.overwrite = pick(random, 0, 1), i.reduce = pick(random, 0, 3);
  i.from_inp = config.block_in == config.block_out && pick(random, 0, 1);
  i.dst = pick(random, 4, 8), i.src = pick(random, 4, 8);
  for (AluLoop& loop : i.loops)
    loop = {static_cast<uint16_t>(pick(random, 1, 3)), static_cast<int16_t>(pick(random, -1, 1)),
            static_cast<int16_t>(pick(random, -1, 1))};
  return i;
}

Store random_store(Random& random, const Config& config) {
  Store i;
  i.mode = static_cast<StoreMode>(pick(random, 0, 2));
  i.base = 1;
  i.x = pick(random, 1, 3), i.y = pick(random, 1, 3);
  i.acc = pick(random, 0, kSlots - 1), i.acc_y_stride = pick(random, 0, 4);
  if (i.mode == StoreMode::q8) i.prm = pick(random, 0, kSlots - 1);
  i.offset = 1024 + pick(random, 0, 64) * config.bus_bytes;
  i.y_stride = pick(random, -4, 4) * 4 * config.block_out;
  i.zero_point = static_cast<int8_t>(pick(random, -128, 127));
  i.low = static_cast<int8_t>(pick(random, -128, 0)),
  i.high = static_cast<int8_t>(pick(random, 0, 127));
  return i;
}

template <class Loops, class Get>
Range affine(Space space, int64_t base, const Loops& loops, Get stride, bool write) {
  Range range{space, base, base, write};
  for (const auto& loop : loops) {
    int64_t reach = int64_t{stride(loop)} * (loop.count - 1);
    (reach < 0 ? range.low : range.high) += reach;
  }
  return range;
}

std::vector<Range> touched(const Instruction& instruction, const Config& config) {
  std::vector<Range> ranges;
  if (auto* i = std::get_if<Load>(&instruction)) {
    int64_t elements = int64_t{i->z} * (i->pad_y0 + i->y + i->pad_y1) *
                       (i->pad_x0 + i->x + i->pad_x1);
    ranges.push_back({i->scope, i->sram, i->sram + elements - 1, true});
    int64_t address = (i->base == 1 ? Board::kOutputs : 0) + int64_t{i->offset};
    int64_t y = int64_t{i->y_stride} * (i->y - 1), z = int64_t{i->z_stride} * (i->z - 1);
    int64_t last = (int64_t{i->x - 1} * i->x_step + 1) * element_bytes(config, i->scope) - 1;
    ranges.push_back({Space::dram, address + std::min<int64_t>(y, 0) + std::min<int64_t>(z, 0),
                      address + std::max<int64_t>(y, 0) + std::max<int64_t>(z, 0) + last, false});
  } else if (auto* i = std::get_if<Gemm>(&instruction)) {
    ranges.push_back(
        affine(Space::acc, i->acc, i->loops, [](const GemmLoop& l) { return l.acc; }, true));
    ranges.push_back(
        affine(Space::inp, i->inp, i->loops, [](const GemmLoop& l) { return l.inp; }, false));
    ranges.push_back(
        affine(Space::wgt, i->wgt, i->loops, [](const GemmLoop& l) { return l.wgt; }, false));
  } else if (auto* i = std::get_if<Alu>(&instruction)) {
    ranges.push_back(
        affine(Space::acc, i->dst, i->loops, [](const AluLoop& l) { return l.dst; }, true));
    ranges.push_back(affine(
        i->from_inp ? Space::inp : Space::acc, i->src, i->loops,
        [](const AluLoop& l) { return l.src; }, false));
  } else if (auto* i = std::get_if<Store>(&instruction)) {
    ranges.push_back({Space::acc, i->acc, i->acc + (i->y - 1) * i->acc_y_stride + i->x - 1, false});
    if (i->mode == StoreMode::q8) ranges.push_back({Space::prm, i->prm, i->prm, false});
    int64_t address = Board::kOutputs + int64_t{i->offset}, y = int64_t{i->y_stride} * (i->y - 1);
    int64_t bytes = int64_t{i->x} * config.block_out * (i->mode == StoreMode::raw ? 4 : 1);
    ranges.push_back({Space::dram, address + std::min<int64_t>(y, 0),
                      address + std::max<int64_t>(y, 0) + bytes - 1, true});
  }
  return ranges;
}

// Appends instructions with the tokens that their conflicts need. Pushes come before their pops in
// the stream, so it cannot deadlock.
class Orderer {
 public:
  explicit Orderer(const Config& config, Random& random) : config_(config), random_(random) {}

  void append(Instruction instruction) {
    int me = index_of(instruction);
    std::vector<Range> ranges = touched(instruction, config_);
    std::array<bool, kEngines> needed{};
    for (const Past& past : past_)
      for (const Range& a : ranges)
        for (const Range& b : past.ranges)
          if (past.engine != me && past.order > known_[me][past.engine] && conflict(a, b))
            needed[past.engine] = true;
    Tokens tokens;
    if (me == 1) {
      if (needed[0]) send(0, 1), tokens.pop_prev = true, receive(0, 1);
      if (needed[2]) send(2, 1), tokens.pop_next = true, receive(2, 1);
    } else if (needed[2 - me] || needed[1]) {
      if (needed[2 - me]) relay(2 - me);
      send(1, me);
      (me == 0 ? tokens.pop_next : tokens.pop_prev) = true;
      receive(1, me);
    }
    set_tokens(instruction, tokens);
    add(instruction, std::move(ranges));
  }
  std::vector<Instruction> take() {
    stream_.push_back(Finish{0x1234});
    return std::move(stream_);
  }

 private:
  struct Past {
    int engine;
    uint32_t order;
    std::vector<Range> ranges;
  };
  static int index_of(const Instruction& i) { return static_cast<int>(engine_of(i)); }

  void add(const Instruction& instruction, std::vector<Range> ranges) {
    int me = index_of(instruction);
    last_[me] = static_cast<int>(stream_.size());
    stream_.push_back(instruction);
    past_.push_back({me, ++known_[me][me], std::move(ranges)});
  }
  // Pushes a token from engine f to e, by f's last instruction if that has no such push, or by a
  // sync.
  void send(int f, int e) {
    bool next = e > f;
    if (last_[f] >= 0 && pick(random_, 0, 3)) {
      Tokens tokens = tokens_of(stream_[last_[f]]);
      bool& bit = next ? tokens.push_next : tokens.push_prev;
      if (!bit) {
        bit = true;
        return set_tokens(stream_[last_[f]], tokens);
      }
    }
    Sync sync{{}, static_cast<Engine>(f)};
    (next ? sync.tokens.push_next : sync.tokens.push_prev) = true;
    add(sync, {});
  }
  void receive(int f, int e) {
    for (int k = 0; k < kEngines; ++k) known_[e][k] = std::max(known_[e][k], known_[f][k]);
  }
  void relay(int from) {  // makes the compute engine know what `from` has done
    send(from, 1);
    receive(from, 1);
    Sync sync{{}, Engine::compute};
    (from == 0 ? sync.tokens.pop_prev : sync.tokens.pop_next) = true;
    add(sync, {});
  }

  Config config_;
  Random& random_;
  std::vector<Instruction> stream_;
  std::vector<Past> past_;
  std::array<std::array<uint32_t, kEngines>, kEngines> known_{};
  std::array<int, kEngines> last_ = {-1, -1, -1};
};

}  // namespace

std::vector<Instruction> random_stream(Random& random, const Config& config, int length) {
  Orderer orderer(config, random);
  for (int i = 0; i < length;) {
    int kind = pick(random, 0, 9);
    Instruction instruction = kind < 4   ? Instruction(random_load(random, config))
                              : kind < 6 ? Instruction(random_gemm(random))
                              : kind < 8 ? Instruction(random_alu(random, config))
                                         : Instruction(random_store(random, config));
    if (Error error = check_fields(instruction, config)) llvm::consumeError(std::move(error));
    else if (Error error = check_range(instruction, config)) llvm::consumeError(std::move(error));
    else orderer.append(instruction), ++i;
  }
  return orderer.take();
}

// Step s of all steps uses input and weight slot s % threads, tile t accumulator slot t % threads.
// The first use of a slot waits for no token and the last one pushes none, so all counters end at
// 0.
std::vector<Instruction> gemm_stream(const GemmShape& shape, int threads, const Config& config) {
  std::vector<Instruction> stream;
  int steps = shape.tiles * shape.steps, inp_slot = config.inp_depth / 2,
      wgt_slot = config.wgt_depth / 2, acc_slot = config.acc_depth / 2;
  int inp_elements = shape.pixels * shape.k_blocks, inp_bytes = inp_elements * config.block_in;
  int out_blocks = shape.out_blocks, wgt_elements = shape.k_blocks * out_blocks,
      wgt_bytes = wgt_elements * config.block_in * config.block_out;
  uint32_t weights = static_cast<uint32_t>(steps * inp_bytes),
           params = weights + static_cast<uint32_t>(shape.steps * wgt_bytes);
  auto u16 = [](int value) { return static_cast<uint16_t>(value); };
  auto i16 = [](int value) { return static_cast<int16_t>(value); };
  stream.push_back(Load{.scope = Space::prm, .offset = params, .x = u16(out_blocks)});
  for (int s = 0; s < steps; ++s) {
    int tile = s / shape.steps, k = s % shape.steps, slot = s % threads,
        acc = acc_slot * (tile % threads);
    bool first = k == 0, last = k == shape.steps - 1;
    stream.push_back(Load{.tokens = {.pop_next = s >= threads},
                          .sram = u16(inp_slot * slot),
                          .offset = static_cast<uint32_t>(s * inp_bytes),
                          .x = u16(inp_elements)});
    stream.push_back(Load{.tokens = {.push_next = true},
                          .scope = Space::wgt,
                          .sram = u16(wgt_slot * slot),
                          .offset = weights + static_cast<uint32_t>(k * wgt_bytes),
                          .x = u16(wgt_elements)});
    Gemm gemm{.tokens = {.pop_prev = true,
                         .pop_next = first && tile >= threads,
                         .push_prev = s + threads < steps,
                         .push_next = last},
              .overwrite = first,
              .reduce = 1,
              .acc = u16(acc),
              .inp = u16(inp_slot * slot),
              .wgt = u16(wgt_slot * slot)};
    gemm.loops[0] = {u16(shape.k_blocks), 0, i16(shape.pixels), i16(out_blocks)};
    gemm.loops[1] = {u16(out_blocks), i16(shape.pixels), 0, 1};
    gemm.loops[2] = {u16(shape.pixels), 1, 1, 0};
    stream.push_back(gemm);
    for (int block = 0; last && block < out_blocks; ++block)
      stream.push_back(
          Store{.tokens = {.pop_prev = block == 0,
                           .push_prev = block == out_blocks - 1 && tile + threads < shape.tiles},
                .base = 1,
                .acc = u16(acc + block * shape.pixels),
                .offset = static_cast<uint32_t>((tile * out_blocks + block) * shape.pixels *
                                                config.out_bytes()),
                .x = u16(shape.pixels),
                .prm = u16(block)});
  }
  stream.push_back(Finish{});
  return stream;
}

std::vector<TokenPlace> tokens_in(const std::vector<Instruction>& stream) {
  std::vector<TokenPlace> places;
  for (size_t i = 0; i < stream.size(); ++i)
    for (bool Tokens::* token :
         {&Tokens::pop_prev, &Tokens::pop_next, &Tokens::push_prev, &Tokens::push_next})
      if (tokens_of(stream[i]).*token) places.push_back({i, token});
  return places;
}
std::vector<Instruction> without(std::vector<Instruction> stream,
                                 std::initializer_list<TokenPlace> places) {
  for (auto [index, token] : places) {
    Tokens tokens = tokens_of(stream[index]);
    tokens.*token = false;
    set_tokens(stream[index], tokens);
  }
  return stream;
}

std::vector<std::pair<TokenPlace, TokenPlace>> token_pairs(const std::vector<Instruction>& stream) {
  using End = std::pair<Engine, bool Tokens::*>;
  std::vector<std::pair<TokenPlace, TokenPlace>> pairs;
  for (auto [from, to] :
       {std::pair<End, End>{{Engine::load, &Tokens::push_next},
                            {Engine::compute, &Tokens::pop_prev}},
        {{Engine::compute, &Tokens::push_prev}, {Engine::load, &Tokens::pop_next}},
        {{Engine::compute, &Tokens::push_next}, {Engine::store, &Tokens::pop_prev}},
        {{Engine::store, &Tokens::push_prev}, {Engine::compute, &Tokens::pop_next}}}) {
    std::vector<TokenPlace> pushes, pops;
    for (const TokenPlace& place : tokens_in(stream)) {
      const End end{engine_of(stream[place.index]), place.token};
      if (end == from) pushes.push_back(place);
      if (end == to) pops.push_back(place);
    }
    for (size_t k = 0; k < std::min(pushes.size(), pops.size()); ++k)
      pairs.emplace_back(pushes[k], pops[k]);
  }
  return pairs;
}

}  // namespace tw::vdla
