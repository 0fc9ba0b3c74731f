// Printer and parser of kernels. The grammar is in docs/reference/text-forms.md.
#include <algorithm>
#include <array>

#include "ir/kernel/kernel.h"
#include "ir/text.h"
#include "support/enum_words.h"
#include "support/hash.h"
#include "support/lexer.h"

namespace tw {

static constexpr const char* word(BufferRole value) {
  switch (value) {
    case BufferRole::input: return "in";
    case BufferRole::output: return "out";
    case BufferRole::constant: return "const";
    case BufferRole::temp: return "temp";
  }
  return nullptr;
}

static constexpr const char* word(Combiner value) {
  switch (value) {
    case Combiner::none: return "=";
    case Combiner::add: return "+=";
    case Combiner::mul: return "*=";
    case Combiner::min: return "min=";
    case Combiner::max: return "max=";
  }
  return nullptr;
}

namespace {

constexpr auto kCombiners = enum_words<Combiner>();
constexpr auto kRoles = enum_words<BufferRole>();
constexpr const char* kGlobal = "global";

class Printer {
 public:
  explicit Printer(const Kernel& kernel) : kernel_(kernel) {}

  std::string run() {
    out_ = "kernel @" + kernel_.name;
    if (!kernel_.symbols.empty()) {
      out_ += "[";
      for (size_t i = 0; i < kernel_.symbols.size(); ++i)
        out_ += (i ? ", " : "") + kernel_.symbols[i];
      out_ += "]";
    }
    out_ += "(";
    bool first = true;
    for (const Buffer& b : kernel_.buffers) {
      if (b.role == BufferRole::temp) continue;
      out_ += (first ? "" : ", ") + b.name + ": " + word(b.role) + " " + type(b);
      for (const std::string& input : b.in_place) out_ += " inplace " + input;
      first = false;
    }
    out_ += ") {\n";
    for (const Buffer& b : kernel_.buffers)
      if (b.role == BufferRole::temp)
        out_ += "  temp " + b.name + ": " + type(b) + per(b.per) + "\n";
    for (const TokenQueue& q : kernel_.queues)
      out_ += "  tokens " + q.name + (q.extent ? "[" + std::to_string(*q.extent) + "]" : "") +
              (q.initial ? " = " + std::to_string(q.initial) : "") + per(q.per) + "\n";
    if (kernel_.body) print(kernel_.body, 1);
    return out_ + "}\n";
  }

 private:
  std::string text(const Expr& e) const {
    return to_string(e, [this](BufferId id) { return kernel_.buffer(id).name; });
  }
  std::string list(const std::vector<Expr>& items) const {
    std::string out;
    for (size_t i = 0; i < items.size(); ++i) out += (i ? ", " : "") + text(items[i]);
    return "[" + out + "]";
  }
  std::string type(const Buffer& b) const {
    return dtype_name(b.dtype) + list(b.shape) + (b.scope == kGlobal ? "" : " " + b.scope);
  }

  static std::string per(const std::string& loop) { return loop.empty() ? "" : " per " + loop; }

  void print(const Stmt& s, int depth) {
    match(s, [&](const auto& kind) { print_kind(kind, depth); });
  }
  void begin(int depth, const std::string& words) {
    out_.append(static_cast<size_t>(depth) * 2, ' ');
    out_ += words;
  }
  void print_body(const Stmt& body, int depth) {
    out_ += " {\n";
    print(body, depth + 1);
    begin(depth, "}\n");
  }

  void print_kind(const stmt::Sequence& sequence, int depth) {
    for (const Stmt& child : sequence.body) print(child, depth);
  }
  void print_kind(const stmt::Loop& loop, int depth) {
    begin(depth, "for " + loop.var + " in " + text(loop.extent));
    if (loop.kind != LoopKind::serial) out_ += std::string(" ") + loop_kind_name(loop.kind);
    if (loop.kind == LoopKind::bind) out_ += " " + loop.axis;
    if (loop.role != AxisRole::spatial) out_ += std::string(" ") + axis_role_name(loop.role);
    for (const Annotation& a : loop.annotations) out_ += " @" + a.key + "=" + a.value;
    print_body(loop.body, depth);
  }
  void print_kind(const stmt::If& guard, int depth) {
    begin(depth, "if " + text(guard.condition));
    print_body(guard.body, depth);
  }
  void print_kind(const stmt::Store& store, int depth) {
    begin(depth, store.label + ": " + kernel_.buffer(store.buffer).name + list(store.indices) +
                     " " + word(store.combiner) + " " + text(store.value));
    if (store.where.defined()) out_ += " where " + text(store.where);
    if (store.init.defined()) out_ += " init " + text(store.init);
    out_ += store.async ? " async\n" : "\n";
  }
  void print_kind(const stmt::Block& block, int depth) {
    begin(depth, "block " + block.name + (block.intrinsic.empty() ? "" : " by " + block.intrinsic));
    print_body(block.body, depth);
  }
  void print_kind(const stmt::Roles& roles, int depth) {
    begin(depth, "roles {\n");
    for (size_t r = 0; r < roles.parts.size(); ++r) {
      begin(depth + 1, roles.names[r]);
      print_body(roles.parts[r], depth + 1);
    }
    begin(depth, "}\n");
  }
  void print_kind(const stmt::Signal& signal, int depth) {
    begin(depth, "signal " + tokens(signal.queue, signal.index, signal.count) +
                     (signal.async ? " async\n" : "\n"));
  }
  void print_kind(const stmt::Wait& wait, int depth) {
    begin(depth, "wait " + tokens(wait.queue, wait.index, wait.count) + "\n");
  }
  void print_kind(const stmt::Barrier& barrier, int depth) {
    begin(depth, "barrier " + barrier.loop + "\n");
  }
  void print_kind(const stmt::Prefetch& prefetch, int depth) {
    begin(depth, "prefetch " + kernel_.buffer(prefetch.buffer).name + list(prefetch.indices) +
                     (prefetch.locality == stmt::Prefetch().locality
                          ? ""
                          : " " + std::to_string(prefetch.locality)) +
                     "\n");
  }
  std::string tokens(const std::string& queue, const Expr& index, int64_t count) const {
    return queue + (index.defined() ? list({index}) : "") +
           (count == 1 ? "" : " " + std::to_string(count));
  }

  const Kernel& kernel_;
  std::string out_;
};

class KernelParser {
 public:
  explicit KernelParser(Lexer& lexer) : lexer_(lexer) {
    scope_.buffer = [this](std::string_view name) -> std::optional<LoadTarget> {
      if (auto id = kernel_.find_buffer(name)) return LoadTarget{*id, kernel_.buffer(*id).dtype};
      return std::nullopt;
    };
  }

  Expected<Kernel> run() {
    TW_TRY(lexer_.expect("kernel"));
    TW_TRY(lexer_.expect("@"));
    if (!lexer_.at("[") && !lexer_.at("(")) {
      TW_ASSIGN(kernel_.name, lexer_.identifier("the kernel's name"));
    }
    if (lexer_.accept("[")) {
      do {
        TW_ASSIGN(std::string symbol, lexer_.identifier("a symbol's name"));
        kernel_.symbols.push_back(std::move(symbol));
      } while (lexer_.accept(","));
      TW_TRY(lexer_.expect("]"));
    }
    TW_TRY(lexer_.expect("("));
    if (!lexer_.accept(")")) {
      do TW_TRY(parse_parameter());
      while (lexer_.accept(","));
      TW_TRY(lexer_.expect(")"));
    }
    TW_TRY(lexer_.expect("{"));
    while (lexer_.at("temp") && lexer_.peek(1).kind == TokenKind::identifier) {
      lexer_.next();
      TW_TRY(parse_buffer(BufferRole::temp));
    }
    while (lexer_.at("tokens") && lexer_.peek(1).kind == TokenKind::identifier) {
      lexer_.next();
      TW_TRY(parse_queue());
    }
    TW_ASSIGN(kernel_.body, parse_statements());
    return std::move(kernel_);
  }

 private:
  Error parse_parameter() { return parse_buffer(std::nullopt); }

  // Parses name: [role] dtype[shape] [scope] {"inplace" input}.
  Error parse_buffer(std::optional<BufferRole> role) {
    Token at = lexer_.peek();
    Buffer buffer;
    TW_ASSIGN(buffer.name, lexer_.identifier("a buffer's name"));
    if (kernel_.find_buffer(buffer.name))
      return lexer_.error_at(at, llvm::formatv("a second buffer '{0}'", buffer.name).str());
    TW_TRY(lexer_.expect(":"));
    for (size_t r = 0; r < 3 && !role; ++r)
      if (lexer_.accept(kRoles[r])) role = static_cast<BufferRole>(r);
    if (!role) return lexer_.expected("in, out or const");
    buffer.role = *role;
    std::optional<DType> type = dtype_from_name(lexer_.peek().text);
    if (!type) return lexer_.expected("an element type");
    buffer.dtype = *type;
    lexer_.next();
    TW_TRY(lexer_.expect("["));
    while (!lexer_.at("]")) {
      TW_ASSIGN(Expr extent, parse_expr_of(lexer_, DType::i64, {}));
      buffer.shape.push_back(std::move(extent));
      if (!lexer_.accept(",")) break;
    }
    TW_TRY(lexer_.expect("]"));
    constexpr std::array<const char*, 12> kNext = {"for",    "if",      "temp",    "tokens",
                                                   "per",    "inplace", "block",   "roles",
                                                   "signal", "wait",    "barrier", "prefetch"};
    const bool next = lexer_.peek(1).is(":") ||
                      std::any_of(kNext.begin(), kNext.end(),
                                  [&](const char* word) { return lexer_.at(word); });
    if (lexer_.peek().kind == TokenKind::identifier && !next) buffer.scope = lexer_.next().text;
    while (buffer.role == BufferRole::output && lexer_.accept("inplace")) {
      TW_ASSIGN(std::string input, lexer_.identifier("an input"));
      buffer.in_place.push_back(std::move(input));
    }
    TW_TRY(parse_per(buffer.per));
    kernel_.buffers.push_back(std::move(buffer));
    return Error::success();
  }

  Error parse_per(std::string& loop) {
    if (!lexer_.accept("per")) return Error::success();
    TW_ASSIGN(loop, lexer_.identifier("a loop"));
    return Error::success();
  }

  // Parses tokens name ["[" extent "]"] ["=" initial] ["per" loop].
  Error parse_queue() {
    Token at = lexer_.peek();
    TokenQueue queue;
    TW_ASSIGN(queue.name, lexer_.identifier("a token queue's name"));
    if (kernel_.find_queue(queue.name))
      return lexer_.error_at(at, llvm::formatv("a second token queue '{0}'", queue.name).str());
    if (lexer_.accept("[")) {
      TW_ASSIGN(queue.extent, lexer_.integer("the number of queues"));
      TW_TRY(lexer_.expect("]"));
    }
    if (lexer_.accept("=")) {
      TW_ASSIGN(queue.initial, lexer_.integer("the number of tokens at the start"));
    }
    TW_TRY(parse_per(queue.per));
    kernel_.queues.push_back(std::move(queue));
    return Error::success();
  }

  Expected<Stmt> parse_statements() {  // up to and including the closing brace
    TW_TRY(lexer_.enter());
    std::vector<Stmt> body;
    while (!lexer_.accept("}")) {
      TW_ASSIGN(Stmt s, parse_statement());
      body.push_back(std::move(s));
    }
    lexer_.leave();
    return make_sequence(std::move(body));
  }

  Expected<Stmt> parse_statement() {
    if (lexer_.peek().kind != TokenKind::identifier) return lexer_.expected("a statement or '}'");
    if (lexer_.peek(1).is(":")) return parse_store();
    if (lexer_.accept("for")) return parse_loop();
    if (lexer_.accept("if")) {
      TW_ASSIGN(Expr condition, parse_expr_of(lexer_, DType::boolean, scope_));
      TW_TRY(lexer_.expect("{"));
      TW_ASSIGN(Stmt body, parse_statements());
      return make_if(std::move(condition), std::move(body));
    }
    if (lexer_.accept("block")) return parse_block();
    if (lexer_.accept("roles")) return parse_roles();
    if (lexer_.accept("signal")) {
      stmt::Signal signal;
      TW_TRY(parse_tokens(signal.queue, signal.index, signal.count));
      signal.async = accept_async();
      return make_stmt(std::move(signal));
    }
    if (lexer_.accept("wait")) {
      stmt::Wait wait;
      TW_TRY(parse_tokens(wait.queue, wait.index, wait.count));
      return make_stmt(std::move(wait));
    }
    if (lexer_.accept("barrier")) {
      stmt::Barrier barrier;
      TW_ASSIGN(barrier.loop, lexer_.identifier("a bound loop"));
      return make_stmt(std::move(barrier));
    }
    if (lexer_.accept("prefetch")) return parse_prefetch();
    return lexer_.expected(
        "a statement (for, if, block, roles, signal, wait, barrier, prefetch, or label: "
        "buffer[...] = value)");
  }

  Expected<Stmt> parse_block() {
    stmt::Block block;
    TW_ASSIGN(block.name, lexer_.identifier("the block's name"));
    if (lexer_.accept("by")) { TW_ASSIGN(block.intrinsic, lexer_.identifier("an intrinsic")); }
    TW_TRY(lexer_.expect("{"));
    TW_ASSIGN(block.body, parse_statements());
    return make_stmt(std::move(block));
  }

  Expected<Stmt> parse_roles() {
    stmt::Roles roles;
    TW_TRY(lexer_.expect("{"));
    do {
      TW_ASSIGN(std::string name, lexer_.identifier("a role"));
      TW_TRY(lexer_.expect("{"));
      TW_ASSIGN(Stmt part, parse_statements());
      roles.names.push_back(std::move(name));
      roles.parts.push_back(std::move(part));
    } while (!lexer_.accept("}"));
    return make_stmt(std::move(roles));
  }

  // Parses name ["[" index "]"] [count].
  Error parse_tokens(std::string& queue, Expr& index, int64_t& count) {
    Token at = lexer_.peek();
    TW_ASSIGN(queue, lexer_.identifier("a token queue"));
    if (!kernel_.find_queue(queue))
      return lexer_.error_at(at, llvm::formatv("no token queue '{0}' here", queue).str());
    if (lexer_.accept("[")) {
      TW_ASSIGN(index, parse_expr_of(lexer_, DType::i64, scope_));
      TW_TRY(lexer_.expect("]"));
    }
    if (lexer_.peek().kind == TokenKind::integer) {
      TW_ASSIGN(count, lexer_.integer("a number of tokens"));
    }
    return Error::success();
  }

  Expected<Stmt> parse_prefetch() {
    stmt::Prefetch prefetch;
    TW_ASSIGN(prefetch.buffer, parse_buffer_name());
    TW_ASSIGN(prefetch.indices, parse_indices());
    if (lexer_.peek().kind == TokenKind::integer) {
      TW_ASSIGN(prefetch.locality, lexer_.integer("a locality"));
    }
    return make_stmt(std::move(prefetch));
  }

  bool accept_async() { return !lexer_.peek(1).is(":") && lexer_.accept("async"); }

  Expected<BufferId> parse_buffer_name() {
    Token at = lexer_.peek();
    TW_ASSIGN(std::string name, lexer_.identifier("a buffer's name"));
    if (auto buffer = kernel_.find_buffer(name)) return *buffer;
    return lexer_.error_at(at, llvm::formatv("no buffer '{0}' here", name).str());
  }

  Expected<std::vector<Expr>> parse_indices() {
    std::vector<Expr> indices;
    TW_TRY(lexer_.expect("["));
    while (!lexer_.at("]")) {
      TW_ASSIGN(Expr index, parse_expr_of(lexer_, DType::i64, scope_));
      indices.push_back(std::move(index));
      if (!lexer_.accept(",")) break;
    }
    TW_TRY(lexer_.expect("]"));
    return indices;
  }

  Expected<Stmt> parse_loop() {
    stmt::Loop loop;
    TW_ASSIGN(loop.var, lexer_.identifier("a loop variable"));
    TW_TRY(lexer_.expect("in"));
    TW_ASSIGN(loop.extent, parse_expr_of(lexer_, DType::i64, scope_));
    for (int k = 0; k < kLoopKindCount; ++k)
      if (lexer_.accept(loop_kind_name(static_cast<LoopKind>(k)))) {
        loop.kind = static_cast<LoopKind>(k);
        break;
      }
    if (loop.kind == LoopKind::bind) { TW_ASSIGN(loop.axis, lexer_.identifier("an axis")); }
    for (int r = 0; r < kAxisRoleCount; ++r)
      if (lexer_.accept(axis_role_name(static_cast<AxisRole>(r)))) {
        loop.role = static_cast<AxisRole>(r);
        break;
      }
    while (lexer_.accept("@")) {
      Annotation annotation;
      TW_ASSIGN(annotation.key, lexer_.identifier("an annotation's key"));
      TW_TRY(lexer_.expect("="));
      const Token value = lexer_.next();
      if (value.kind != TokenKind::identifier && value.kind != TokenKind::integer)
        return lexer_.error_at(value, "expected a name or an integer");
      annotation.value = value.text;
      loop.annotations.push_back(std::move(annotation));
    }
    TW_TRY(lexer_.expect("{"));
    TW_ASSIGN(loop.body, parse_statements());
    return make_stmt(std::move(loop));
  }

  Expected<Combiner> parse_assignment() {
    for (size_t i = 0; i < kCombiners.size(); ++i) {
      const char* text = kCombiners[i];
      const auto combiner = static_cast<Combiner>(i);
      if (lexer_.accept(text)) return combiner;
      bool word = combiner == Combiner::min || combiner == Combiner::max;
      if (word && lexer_.at(std::string_view(text).substr(0, 3)) && lexer_.peek(1).is("=")) {
        lexer_.next();
        lexer_.next();
        return combiner;
      }
    }
    return lexer_.expected("=, +=, *=, min= or max=");
  }

  Expected<Stmt> parse_store() {
    stmt::Store store;
    store.label = lexer_.next().text;
    TW_TRY(lexer_.expect(":"));
    TW_ASSIGN(store.buffer, parse_buffer_name());
    DType type = kernel_.buffer(store.buffer).dtype;
    TW_ASSIGN(store.indices, parse_indices());
    TW_ASSIGN(store.combiner, parse_assignment());
    TW_ASSIGN(store.value, parse_expr_of(lexer_, type, scope_));
    if (lexer_.accept("where")) {
      TW_ASSIGN(store.where, parse_expr_of(lexer_, DType::boolean, scope_));
    }
    if (lexer_.accept("init")) { TW_ASSIGN(store.init, parse_expr_of(lexer_, type, scope_)); }
    store.async = accept_async();
    return make_store(std::move(store));
  }

  Lexer& lexer_;
  Kernel kernel_;
  ExprScope scope_;
};

}  // namespace

std::string print(const Kernel& kernel) { return Printer(kernel).run(); }

Expected<Kernel> parse_kernel(Lexer& lexer) { return KernelParser(lexer).run(); }

Expected<Kernel> parse_kernel(std::string_view text, std::string_view file) {
  Lexer lexer(text, file);
  TW_ASSIGN(Kernel kernel, parse_kernel(lexer));
  if (!lexer.at_end()) return lexer.expected("the end of the text");
  return kernel;
}

std::string kernel_hash(const Kernel& kernel) {
  Kernel unnamed = kernel;
  unnamed.name.clear();
  return short_hash(print(unnamed));
}

}  // namespace tw
