#include "backends/vdla/stream.h"

#include <algorithm>
#include <set>

#include "backends/vdla/unsupported.h"

namespace tw::vdla {
namespace {

constexpr size_t kMostInstructions = size_t{1} << 20;

// An instruction of one part of one virtual thread
struct Item {
  Instruction instruction;
  size_t segment = 0;  // items between two waits are one segment
  // Items of other lines (line, item) that must be complete before
  std::vector<std::pair<int, size_t>> needs;
};
// For a signal: the number of items before it; for a wait: the first item behind it
struct Token {
  std::string queue;
  size_t item;
};
struct Line {
  Engine engine = Engine::load;
  std::vector<Item> items;
  std::vector<Token> signals, waits;
  size_t segment = 0;
  bool waited = false;  // only waits since the last item
};

class Streamer {
 public:
  Streamer(const Kernel& kernel, const Device& device, const Target& target)
      : kernel_(kernel), device_(device), nests_(kernel, device, target, out_.parts) {}

  Expected<KernelStream> run() {
    if (!kernel_.symbols.empty())
      return unsupported("kernels with free dimensions are not for the device");
    visit(kernel_.body, [&](const Stmt& s) {
      if (const auto* loop = as<stmt::Loop>(s); loop && loop->kind == LoopKind::vthread)
        threads_ = as_const(loop->extent).value_or(1);
    });
    bool parts = false;
    visit(kernel_.body, [&](const Stmt& s) { parts |= is<stmt::Roles>(s); });
    if (!parts)
      return unsupported(
          "no instruction computes it: there are sums of i8 products with constant weights and "
          "maxima over windows, of channels in blocks");
    TW_TRY(walk(kernel_.body, {}, 0, -1));
    TW_TRY(connect());
    TW_TRY(order());
    out_.instructions.push_back(Finish{});
    return std::move(out_);
  }

 private:
  // Elements that a temp takes in its memory; 0: it has no memory.
  int64_t elements_of(const Buffer& buffer) const {
    const std::optional<Space> space = NestLowering::space_of(buffer);
    if (buffer.role != BufferRole::temp || !space) return 0;
    int64_t values = 1;
    for (const Expr& extent : buffer.shape) values *= as_const(extent).value_or(int64_t{1} << 32);
    const int64_t lanes = *space == Space::acc ? device_.config.block_out
                                               : element_bytes(device_.config, *space);
    return (values + lanes - 1) / lanes;
  }

  // The places of a virtual thread's temps; each thread has its part of every memory. With a single
  // thread, sums lie around the middle, where the second bank begins, so that one of two slots is
  // stored while the other is computed.
  Expected<std::vector<int64_t>> addresses(int64_t thread) const {
    std::vector<int64_t> out(kernel_.buffers.size());
    int64_t sums = 0;
    for (const Buffer& buffer : kernel_.buffers)
      if (NestLowering::space_of(buffer) == Space::acc) sums += elements_of(buffer);
    std::map<Space, int64_t> used, first;
    if (threads_ == 1)
      first[Space::acc] = std::max<int64_t>(0, (depth(device_.config, Space::acc) - sums) / 2);
    for (size_t b = 0; b < kernel_.buffers.size(); ++b) {
      const Buffer& buffer = kernel_.buffers[b];
      const int64_t elements = elements_of(buffer);
      if (elements == 0) continue;
      const Space space = *NestLowering::space_of(buffer);
      const int64_t part_depth = depth(device_.config, space) / threads_;
      out[b] = thread * part_depth + first[space] + used[space];
      used[space] += elements;
      if (used[space] > part_depth)
        return unsupported("'{0}' needs {1} elements of {2}, a virtual thread has {3}", buffer.name,
                           used[space], buffer.scope, part_depth);
    }
    return out;
  }

  // `line` is the number of the part that runs the statement; -1: outside of roles.
  Error walk(const Stmt& s, const Values& values, int64_t thread, int line) {
    if (const auto* sequence = as<stmt::Sequence>(s)) {
      for (const Stmt& child : sequence->body) TW_TRY(walk(child, values, thread, line));
      return Error::success();
    }
    if (const auto* roles = as<stmt::Roles>(s)) return split(*roles, values, thread, line);
    if (const auto* signal = as<stmt::Signal>(s)) return give(*signal, line);
    if (const auto* wait = as<stmt::Wait>(s)) return take(*wait, line);
    if (line >= 0 && NestLowering::is_nest(s))
      return lower(s, values, thread, lines_[static_cast<size_t>(line)]);
    const auto* loop = as<stmt::Loop>(s);
    if (!loop || (is_concurrent(loop->kind) && (loop->kind != LoopKind::vthread || line >= 0)))
      return line < 0
                 ? unsupported("a statement stands outside of the roles load, compute and store")
                 : unsupported("a statement of no kind that the device knows stands in a part");
    const std::optional<int64_t> extent = as_const(loop->extent);
    if (!extent) return unsupported("the extent of loop '{0}' is not constant", loop->var);
    for (int64_t i = 0; i < *extent; ++i) {
      Values inside = values;
      inside[loop->var] = i;
      TW_TRY(walk(loop->body, inside, loop->kind == LoopKind::vthread ? i : thread, line));
    }
    return Error::success();
  }

  Error split(const stmt::Roles& roles, const Values& values, int64_t thread, int line) {
    if (line >= 0 || begun_.count(thread)) return unsupported("parts begin more than once");
    begun_.insert(thread);
    TW_ASSIGN(sram_[thread], addresses(thread));
    for (const Stmt& part : roles.parts) {
      lines_.emplace_back();
      threads_of_.push_back(thread);
      TW_TRY(walk(part, values, thread, static_cast<int>(lines_.size()) - 1));
    }
    return Error::success();
  }

  static Error unknown_tokens(const std::string& queue) {
    return unsupported("the tokens '{0}' are of no kind that the device knows", queue);
  }

  Error give(const stmt::Signal& signal, int line) {
    if (line < 0 || signal.async || signal.index.defined()) return unknown_tokens(signal.queue);
    Line& at = lines_[static_cast<size_t>(line)];
    for (int64_t i = 0; i < signal.count; ++i)
      at.signals.push_back({signal.queue, at.items.size()});
    return Error::success();
  }

  Error take(const stmt::Wait& wait, int line) {
    if (line < 0 || wait.index.defined()) return unknown_tokens(wait.queue);
    Line& at = lines_[static_cast<size_t>(line)];
    if (!at.waited) ++at.segment, at.waited = true;
    for (int64_t i = 0; i < wait.count; ++i) at.waits.push_back({wait.queue, at.items.size()});
    return Error::success();
  }

  Error lower(const Stmt& s, const Values& values, int64_t thread, Line& line) {
    std::vector<Instruction> made;
    TW_TRY(nests_.lower(s, values, sram_[thread], made));
    for (Instruction& instruction : made) {
      const Engine engine = engine_of(instruction);
      if (line.items.empty()) line.engine = engine;
      if (engine != line.engine)
        return unsupported("one part has instructions of two engines, {0} and {1}",
                           engine_name(line.engine), engine_name(engine));
      line.items.push_back({instruction, line.segment, {}});
      line.waited = false;
    }
    if ((total_ += made.size()) > kMostInstructions)
      return make_error(DiagCode::limit, "the stream has more than {0} instructions",
                        kMostInstructions);
    return Error::success();
  }

  // Connects tokens: wait k of a queue takes the token of signal k - `initial`.
  Error connect() {
    for (const TokenQueue& queue : kernel_.queues)
      for (int64_t thread = 0; thread < threads_; ++thread) {
        std::vector<std::pair<int, size_t>> signals;
        for (size_t l = 0; l < lines_.size(); ++l)
          for (const Token& token : lines_[l].signals)
            if (threads_of_[l] == thread && token.queue == queue.name)
              signals.emplace_back(static_cast<int>(l), token.item);
        int64_t taken = -queue.initial;
        for (size_t l = 0; l < lines_.size(); ++l)
          for (const Token& token : lines_[l].waits) {
            if (threads_of_[l] != thread || token.queue != queue.name) continue;
            const int64_t k = taken++;
            if (k < 0 || token.item >= lines_[l].items.size()) continue;
            if (k >= static_cast<int64_t>(signals.size()))
              return unsupported("a token of '{0}' is waited for and never given", queue.name);
            const auto [from, before] = signals[static_cast<size_t>(k)];
            if (before == 0) continue;
            if (std::abs(static_cast<int>(lines_[static_cast<size_t>(from)].engine) -
                         static_cast<int>(lines_[l].engine)) != 1)
              return unsupported("the engines {0} and {1} have no tokens for each other",
                                 engine_name(lines_[static_cast<size_t>(from)].engine),
                                 engine_name(lines_[l].engine));
            lines_[l].items[token.item].needs.emplace_back(from, before - 1);
          }
      }
    return Error::success();
  }

  // Orders the stream. Each engine takes turns of its virtual threads, always in the same order.
  // Every instruction comes after those that it needs.
  struct Place {
    size_t line, item;
  };
  Error order() {
    std::array<std::vector<Place>, kEngines> engines;
    for (int e = 0; e < kEngines; ++e)
      engines[static_cast<size_t>(e)] = interleaved(static_cast<Engine>(e));
    // Number of each item in its engine, by line and item; -1: not in the stream yet
    std::vector<std::vector<int64_t>> at(lines_.size());
    for (size_t l = 0; l < lines_.size(); ++l) at[l].assign(lines_[l].items.size(), -1);
    std::array<size_t, kEngines> next{};
    std::vector<std::pair<Place, Engine>> stream;
    load_parameters();
    while (stream.size() < total_) {
      bool progress = false;
      for (const Engine engine : {Engine::load, Engine::store, Engine::compute}) {
        auto& n = next[static_cast<size_t>(engine)];
        const auto& list = engines[static_cast<size_t>(engine)];
        if (n == list.size()) continue;
        const Place p = list[n];
        const auto& needs = lines_[p.line].items[p.item].needs;
        if (!std::ranges::all_of(needs, [&](const auto& need) {
              return at[static_cast<size_t>(need.first)][need.second] >= 0;
            }))
          continue;
        at[p.line][p.item] = static_cast<int64_t>(n++);
        stream.push_back({p, engine});
        progress = true;
        break;
      }
      if (!progress) return unsupported("the parts wait for each other for ever");
    }
    give_tokens(stream, at);
    for (const auto& [p, engine] : stream)
      out_.instructions.push_back(lines_[p.line].items[p.item].instruction);
    return Error::success();
  }

  std::vector<Place> interleaved(Engine engine) const {
    std::vector<Place> out;
    for (size_t l = 0; l < lines_.size(); ++l)
      if (lines_[l].engine == engine)
        for (size_t i = 0; i < lines_[l].items.size(); ++i) out.push_back({l, i});
    std::ranges::sort(out, {}, [&](const Place& p) {
      return std::tuple(lines_[p.line].items[p.item].segment, p.line, p.item);
    });
    return out;
  }

  // Makes the hardware's tokens. A neighbour completes its instructions in order, so a token covers
  // all of them up to the one that gives it. An instruction takes a token only if it needs more of
  // them complete than any before, and exactly the last needed instruction gives it.
  void give_tokens(const std::vector<std::pair<Place, Engine>>& stream,
                   const std::vector<std::vector<int64_t>>& at) {
    std::map<std::pair<Engine, Engine>, int64_t> known;  // last complete number, by giver and taker
    for (const auto& [p, engine] : stream) {
      Item& item = lines_[p.line].items[p.item];
      std::map<Engine, std::pair<int, size_t>> last;
      for (const auto& need : item.needs) {
        const Engine giver = lines_[static_cast<size_t>(need.first)].engine;
        const auto found = last.find(giver);
        const auto number = [&](const std::pair<int, size_t>& n) {
          return at[static_cast<size_t>(n.first)][n.second];
        };
        if (found == last.end() || number(found->second) < number(need)) last[giver] = need;
      }
      for (const auto& [giver, need] : last) {
        int64_t& complete = known.try_emplace({giver, engine}, -1).first->second;
        const int64_t number = at[static_cast<size_t>(need.first)][need.second];
        if (number <= complete) continue;
        complete = number;
        Instruction& gives = lines_[static_cast<size_t>(need.first)].items[need.second].instruction;
        Tokens taken = tokens_of(item.instruction), given = tokens_of(gives);
        (giver < engine ? taken.pop_prev : taken.pop_next) = true;
        (giver < engine ? given.push_next : given.push_prev) = true;
        set_tokens(item.instruction, taken);
        set_tokens(gives, given);
      }
    }
  }

  // Loads the parameters before everything else, so that the token of the first operands covers
  // them too.
  void load_parameters() {
    auto& parts = out_.parts;
    if (!parts.requant) return;
    parts.bases.push_back(kNoBuffer);
    Load load;
    load.scope = Space::prm;
    load.base = static_cast<uint8_t>(parts.bases.size() - 1);
    load.x = static_cast<uint16_t>(parts.channels / device_.config.block_out);
    out_.instructions.push_back(load);
  }

  const Kernel& kernel_;
  const Device& device_;
  KernelStream out_;
  NestLowering nests_;
  int64_t threads_ = 1;
  std::vector<Line> lines_;
  std::vector<int64_t> threads_of_;  // virtual thread of each line
  std::set<int64_t> begun_;
  std::map<int64_t, std::vector<int64_t>> sram_;  // places of buffers, by virtual thread
  size_t total_ = 0;
};

}  // namespace

Expected<KernelStream> compile_stream(const Kernel& kernel, const Device& device,
                                      const Target& target) {
  TW_ASSIGN(KernelStream stream, Streamer(kernel, device, target).run());
  if (stream.parts.bases.size() > kBases)
    return unsupported("{0} parameters are too many", stream.parts.bases.size());
  return stream;
}

}  // namespace tw::vdla
