// Printer and parser of kernels; the grammar is in docs/ir.md.
#include <array>

#include "ir/kernel/kernel.h"
#include "ir/text.h"
#include "support/hash.h"
#include "support/lexer.h"

namespace tw {
namespace {

struct CombinerText { Combiner combiner; const char* text; };
constexpr std::array<CombinerText, 5> kCombiners = {{
    {Combiner::none, "="}, {Combiner::add, "+="}, {Combiner::mul, "*="}, {Combiner::min, "min="}, {Combiner::max, "max="}}};
constexpr std::array<const char*, 4> kRoles = {"in", "out", "const", "temp"};  // by BufferRole
constexpr const char* kGlobal = "global";

class Printer {
 public:
  explicit Printer(const Kernel& kernel) : kernel_(kernel) {}

  std::string run() {
    out_ = "kernel @" + kernel_.name;
    if (!kernel_.symbols.empty()) {
      out_ += "[";
      for (size_t i = 0; i < kernel_.symbols.size(); ++i) out_ += (i ? ", " : "") + kernel_.symbols[i];
      out_ += "]";
    }
    out_ += "(";
    bool first = true;
    for (const Buffer& b : kernel_.buffers) {
      if (b.role == BufferRole::temp) continue;
      out_ += (first ? "" : ", ") + b.name + ": " + kRoles[static_cast<size_t>(b.role)] + " " + type(b);
      first = false;
    }
    out_ += ") {\n";
    for (const Buffer& b : kernel_.buffers)
      if (b.role == BufferRole::temp) out_ += "  temp " + b.name + ": " + type(b) + "\n";
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

  void print(const Stmt& s, int depth) {
    std::string indent(static_cast<size_t>(depth) * 2, ' ');
    switch (s->kind) {
      case StmtKind::block:
        for (const Stmt& child : s->body) print(child, depth);
        return;
      case StmtKind::loop:
        out_ += indent + "for " + s->var + " in " + text(s->extent);
        if (s->loop_kind != LoopKind::serial) out_ += std::string(" ") + loop_kind_name(s->loop_kind);
        if (s->role != AxisRole::spatial) out_ += std::string(" ") + axis_role_name(s->role);
        return print_body(s, indent, depth);
      case StmtKind::if_then:
        out_ += indent + "if " + text(s->condition);
        return print_body(s, indent, depth);
      case StmtKind::store:
        out_ += indent + s->label + ": " + kernel_.buffer(s->buffer).name + list(s->indices) + " " +
                kCombiners[static_cast<size_t>(s->combiner)].text + " " + text(s->value);
        if (s->where.defined()) out_ += " where " + text(s->where);
        if (s->init.defined()) out_ += " init " + text(s->init);
        out_ += "\n";
        return;
    }
    TW_UNREACHABLE("bad statement");
  }
  void print_body(const Stmt& s, const std::string& indent, int depth) {
    out_ += " {\n";
    print(s->body[0], depth + 1);
    out_ += indent + "}\n";
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
    TW_ASSIGN(kernel_.body, parse_statements());
    return std::move(kernel_);
  }

 private:
  Error parse_parameter() { return parse_buffer(std::nullopt); }

  // name: [role] dtype[shape] [scope]
  Error parse_buffer(std::optional<BufferRole> role) {
    Token at = lexer_.peek();
    Buffer buffer;
    TW_ASSIGN(buffer.name, lexer_.identifier("a buffer's name"));
    if (kernel_.find_buffer(buffer.name)) return lexer_.error_at(at, llvm::formatv("a second buffer '{0}'", buffer.name).str());
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
    bool labels = lexer_.peek(1).is(":") || lexer_.at("for") || lexer_.at("if") || lexer_.at("temp");
    if (lexer_.peek().kind == TokenKind::identifier && !labels) buffer.scope = lexer_.next().text;
    kernel_.buffers.push_back(std::move(buffer));
    return Error::success();
  }

  Expected<Stmt> parse_statements() {  // up to and with the closing brace
    TW_TRY(lexer_.enter());
    std::vector<Stmt> body;
    while (!lexer_.accept("}")) {
      TW_ASSIGN(Stmt s, parse_statement());
      body.push_back(std::move(s));
    }
    lexer_.leave();
    return make_block(std::move(body));
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
    return lexer_.expected("a statement (for, if, or label: buffer[...] = value)");
  }

  Expected<Stmt> parse_loop() {
    TW_ASSIGN(std::string var, lexer_.identifier("a loop variable"));
    TW_TRY(lexer_.expect("in"));
    TW_ASSIGN(Expr extent, parse_expr_of(lexer_, DType::i64, scope_));
    LoopKind kind = LoopKind::serial;
    for (int k = 0; k < kLoopKindCount; ++k)
      if (lexer_.accept(loop_kind_name(static_cast<LoopKind>(k)))) {
        kind = static_cast<LoopKind>(k);
        break;
      }
    AxisRole role = AxisRole::spatial;
    for (int r = 0; r < kAxisRoleCount; ++r)
      if (lexer_.accept(axis_role_name(static_cast<AxisRole>(r)))) {
        role = static_cast<AxisRole>(r);
        break;
      }
    TW_TRY(lexer_.expect("{"));
    TW_ASSIGN(Stmt body, parse_statements());
    return make_loop(std::move(var), std::move(extent), std::move(body), kind, role);
  }

  Expected<Combiner> parse_assignment() {
    for (const auto& [combiner, text] : kCombiners) {
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
    StmtNode store{.kind = StmtKind::store};
    store.label = lexer_.next().text;
    TW_TRY(lexer_.expect(":"));
    Token at = lexer_.peek();
    TW_ASSIGN(std::string name, lexer_.identifier("a buffer's name"));
    auto buffer = kernel_.find_buffer(name);
    if (!buffer) return lexer_.error_at(at, llvm::formatv("no buffer '{0}' here", name).str());
    store.buffer = *buffer;
    DType type = kernel_.buffer(*buffer).dtype;
    TW_TRY(lexer_.expect("["));
    while (!lexer_.at("]")) {
      TW_ASSIGN(Expr index, parse_expr_of(lexer_, DType::i64, scope_));
      store.indices.push_back(std::move(index));
      if (!lexer_.accept(",")) break;
    }
    TW_TRY(lexer_.expect("]"));
    TW_ASSIGN(store.combiner, parse_assignment());
    TW_ASSIGN(store.value, parse_expr_of(lexer_, type, scope_));
    if (lexer_.accept("where")) {
      TW_ASSIGN(store.where, parse_expr_of(lexer_, DType::boolean, scope_));
    }
    if (lexer_.accept("init")) {
      TW_ASSIGN(store.init, parse_expr_of(lexer_, type, scope_));
    }
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
