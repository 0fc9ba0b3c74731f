// The text form of schedules: one step a line, "keyword fields". fields() lists each step's fields
// once, for both printing and parsing.
#include <algorithm>
#include <array>
#include <type_traits>

#include "ir/schedule/arguments.h"
#include "ir/schedule/schedule.h"
#include "ir/text.h"
#include "support/lexer.h"

namespace tw {

namespace {

template <class... S>
consteval std::array<const char*, sizeof...(S)> keywords_of(
    std::type_identity<std::variant<S...>>) {
  return {S::kKeyword...};
}
constexpr auto kKeywords = keywords_of(std::type_identity<Step>{});

std::string known_types() {
  std::string known;
  for (int i = 0; i < kArithmeticDTypeCount; ++i)
    known += (i ? ", " : "") + std::string(dtype_name(static_cast<DType>(i)));
  return known;
}

class Printer {
 public:
  template <class T>
  using Ref = const T&;
  explicit Printer(std::string keyword) : text_(std::move(keyword)) {}
  void name(const std::string& value, const char*) { text_ += " " + value; }
  void number(int64_t value, const char*) { text_ += " " + std::to_string(value); }
  void word(const std::string& value, const char*) { text_ += " " + value; }
  void flag(bool value, const char* word) {
    if (value) text_ += std::string(" ") + word;
  }
  void arrow() { text_ += " ->"; }
  void optional_name(const std::string& value, const char* keyword, const char*) {
    if (!value.empty()) text_ += std::string(" ") + keyword + " " + value;
  }
  void optional_number(int64_t value, int64_t usual, const char*) {
    if (value != usual) text_ += " " + std::to_string(value);
  }
  void numbers(const std::vector<int64_t>& values, const char* what) {
    for (const int64_t value : values) number(value, what);
  }
  void parts(const step::RoleParts& values, const char*) {
    for (size_t i = 0; i < values.size(); ++i) {
      text_ += (i ? ", " : " ") + values[i].first + " =";
      names(values[i].second, "");
    }
  }
  void factor(Factor value) { word(factor_name(value), ""); }
  void combiner(Combiner value) {
    if (value != Combiner::add) word(combiner_name(value), "");
  }
  void type(DType value) { word(dtype_name(value), ""); }
  void exprs(const std::vector<Expr>& values, const char*) {
    text_ += " [";
    for (size_t i = 0; i < values.size(); ++i) text_ += (i ? ", " : "") + to_string(values[i]);
    text_ += "]";
  }
  void names(const std::vector<std::string>& values, const char* what) {
    for (const std::string& value : values) name(value, what);
  }
  void names_behind_arrow(const std::vector<std::string>& values, const char* what) {
    if (!values.empty()) arrow();
    names(values, what);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

class Lister {
 public:
  template <class T>
  using Ref = const T&;
  void name(const std::string& value, const char*) { list_.emplace_back(value); }
  void number(int64_t value, const char*) { list_.emplace_back(value); }
  void word(const std::string& value, const char* what) { name(value, what); }
  void flag(bool value, const char*) {
    if (value) list_.emplace_back(int64_t{1});
  }
  void arrow() {}
  void optional_name(const std::string& value, const char*, const char* what) {
    if (!value.empty()) name(value, what);
  }
  void optional_number(int64_t value, int64_t usual, const char* what) {
    if (value != usual) number(value, what);
  }
  void names(const std::vector<std::string>& values, const char* what) {
    for (const std::string& value : values) name(value, what);
  }
  void names_behind_arrow(const std::vector<std::string>& values, const char* what) {
    names(values, what);
  }
  void numbers(const std::vector<int64_t>& values, const char* what) {
    for (const int64_t value : values) number(value, what);
  }
  void parts(const step::RoleParts& values, const char* what) {
    for (const auto& [part, stages] : values) {
      name(part, what);
      names(stages, what);
    }
  }
  void factor(Factor value) { list_.emplace_back(factor_name(value)); }
  void combiner(Combiner value) {
    if (value != Combiner::add) list_.emplace_back(combiner_name(value));
  }
  void type(DType value) { list_.emplace_back(dtype_name(value)); }
  void exprs(const std::vector<Expr>& values, const char* what) {
    for (const Expr& value : values)
      visit(value, [&](const Expr& e) {
        if (const auto known = as_const(e)) number(*known, what);
        if (const auto* variable = as<expr::Var>(e)) name(variable->name, what);
      });
  }
  std::vector<StepArgument> take() { return std::move(list_); }

 private:
  std::vector<StepArgument> list_;
};

// Reads fields up to the end of the line. It keeps the first error and skips the rest.
class Reader {
 public:
  template <class T>
  using Ref = T&;
  Reader(Lexer& lexer, int line) : lexer_(lexer), line_(line) {}
  void name(std::string& value, const char* what) {
    if (!ready(what)) return;
    Expected<std::string> word = lexer_.identifier(what);
    if (word) value = std::move(*word);
    else error_ = word.takeError();
  }
  void number(int64_t& value, const char* what) {
    if (!ready(what)) return;
    Expected<int64_t> integer = lexer_.integer(what);
    if (integer) value = *integer;
    else error_ = integer.takeError();
  }
  void word(std::string& value, const char* what) {
    if (!ready(what)) return;
    const TokenKind kind = lexer_.peek().kind;
    if (kind == TokenKind::identifier || kind == TokenKind::integer) value = lexer_.next().text;
    else error_ = lexer_.expected(what);
  }
  void flag(bool& value, const char* word) { value = accepts(word); }
  void arrow() {
    if (!ready("'->'")) return;
    if (!lexer_.accept("->")) error_ = lexer_.expected(or_option("'->'"));
    options_.clear();
  }
  void optional_name(std::string& value, const char* keyword, const char* what) {
    if (accepts(keyword)) name(value, what);
  }
  void names(std::vector<std::string>& values, const char* what) {
    do name(values.emplace_back(), what);
    while (!error_ && on_line() && lexer_.peek().kind == TokenKind::identifier);
  }
  void names_behind_arrow(std::vector<std::string>& values, const char* what) {
    if (accepts("->")) names(values, what);
  }
  void optional_number(int64_t& value, int64_t usual, const char* what) {
    value = usual;
    if (!error_ && on_line()) number(value, or_option(what).c_str()), options_.clear();
  }
  void numbers(std::vector<int64_t>& values, const char* what) {
    do number(values.emplace_back(), what);
    while (!error_ && on_line() && lexer_.peek().kind == TokenKind::integer);
  }
  // Reads name = stage stage..., name = ...
  void parts(step::RoleParts& values, const char* what) {
    do {
      auto& [part, stages] = values.emplace_back();
      name(part, what);
      if (ready("'='")) error_ = lexer_.expect("=");
      names(stages, "a stage");
    } while (!error_ && on_line() && lexer_.accept(","));
  }
  void factor(Factor& value) {
    if (!ready("left or right")) return;
    if (lexer_.accept(factor_name(Factor::left))) value = Factor::left;
    else if (lexer_.accept(factor_name(Factor::right))) value = Factor::right;
    else error_ = lexer_.expected("left or right");
  }
  void combiner(Combiner& value) {
    for (const Combiner other : {Combiner::max, Combiner::min, Combiner::mul})
      if (accepts(combiner_name(other))) {
        value = other;
        return;
      }
  }
  void type(DType& value) {
    if (!ready("a type")) return;
    const std::optional<DType> known = dtype_from_name(lexer_.peek().text);
    if (known) value = *known, lexer_.next();
    else error_ = lexer_.expected("a type, " + known_types());
  }
  void exprs(std::vector<Expr>& values, const char* what) {
    if (!ready(what)) return;
    error_ = lexer_.expect("[");
    while (!error_ && ready(what) && !lexer_.at("]")) {
      Expected<Expr> e = parse_expr(lexer_);
      if (!e) error_ = e.takeError();
      else values.push_back(std::move(*e));
      if (!error_ && !lexer_.accept(",")) break;
    }
    if (!error_) error_ = lexer_.expect("]");
  }
  Error finish() {
    if (!error_ && on_line()) error_ = lexer_.expected(or_option("the end of the line"));
    return std::move(error_);
  }

 private:
  bool on_line() const {
    return lexer_.peek().line == line_ && !lexer_.at_end() && !lexer_.at("}");
  }
  // Takes a word that may be left out, and notes it where another one stands there.
  bool accepts(const char* word) {
    if (error_ || !on_line()) return false;
    if (lexer_.accept(word)) return options_.clear(), true;
    options_ += std::string(word) + ", ";
    return false;
  }
  // Says what is expected where words may be left out in front of it.
  std::string or_option(const char* what) const {
    if (options_.empty()) return what;
    return options_.substr(0, options_.size() - 2) + " or " + what;
  }
  bool ready(const char* what) {
    if (error_) return false;
    if (!on_line())
      error_ = lexer_.error_here(llvm::formatv("expected {0} on the line of the step", what).str());
    return !error_;
  }

  Lexer& lexer_;
  int line_;
  std::string options_;  // words that could stand at the next token, each with ", " behind it
  Error error_ = Error::success();
};

template <class V>
void tail(V& v, const Tail& value) {
  v.flag(value == Tail::shift, "shift");
}
void tail(Reader& v, Tail& value) {
  bool shift = false;
  v.flag(shift, "shift");
  value = shift ? Tail::shift : Tail::guard;
}

template <class V>
void fields(V& v, typename V::template Ref<step::Split> s) {
  v.name(s.loop, "a loop");
  v.number(s.factor, "a factor");
  tail(v, s.tail);
  v.arrow();
  v.name(s.outer, "the outer loop's name");
  v.name(s.inner, "the inner loop's name");
}
template <class V>
void fields(V& v, typename V::template Ref<step::Fuse> s) {
  v.name(s.outer, "the outer loop");
  v.name(s.inner, "the inner loop");
  v.arrow();
  v.name(s.fused, "the new loop's name");
}
template <class V>
void fields(V& v, typename V::template Ref<step::Reorder> s) {
  v.names(s.loops, "a loop");
}
template <class V>
void fields(V& v, typename V::template Ref<step::Vectorize> s) {
  v.name(s.loop, "a loop");
}
template <class V>
void fields(V& v, typename V::template Ref<step::Unroll> s) {
  v.name(s.loop, "a loop");
}
template <class V>
void fields(V& v, typename V::template Ref<step::Parallel> s) {
  v.name(s.loop, "a loop");
}
template <class V>
void fields(V& v, typename V::template Ref<step::ComputeAt> s) {
  v.name(s.stage, "a stage");
  v.name(s.loop, "a loop");
}
template <class V>
void fields(V& v, typename V::template Ref<step::ComputeInline> s) {
  v.name(s.stage, "a stage");
}
template <class V>
void fields(V& v, typename V::template Ref<step::CacheWrite> s) {
  v.name(s.stage, "a stage");
  v.arrow();
  v.name(s.name, "the new buffer's name");
  v.name(s.scope, "a scope");
}
template <class V>
void fields(V& v, typename V::template Ref<step::CacheRead> s) {
  v.name(s.buffer, "a buffer");
  v.name(s.stage, "a stage");
  v.arrow();
  v.name(s.name, "the new buffer's name");
  v.name(s.scope, "a scope");
}
template <class V>
void fields(V& v, typename V::template Ref<step::Pack> s) {
  v.name(s.stage, "a stage");
  v.factor(s.factor);
  v.arrow();
  v.name(s.name, "the new buffer's name");
  v.name(s.scope, "a scope");
  v.exprs(s.map, "the new indices");
  v.names(s.loops, "a new loop's name");
}
template <class V>
void fields(V& v, typename V::template Ref<step::Block> s) {
  v.name(s.buffer, "a buffer");
  v.number(s.dim, "a dimension");
  v.number(s.factor, "a factor");
  v.names_behind_arrow(s.loops, "a new loop's name");
}
template <class V>
void fields(V& v, typename V::template Ref<step::Flatten> s) {
  v.name(s.stage, "a stage");
  v.arrow();
  v.name(s.loop, "the new loop's name");
}
template <class V>
void fields(V& v, typename V::template Ref<step::Narrow> s) {
  v.name(s.stage, "a stage");
  v.factor(s.factor);
  v.type(s.type);
}
template <class V>
void fields(V& v, typename V::template Ref<step::Retype> s) {
  v.name(s.buffer, "a buffer");
  v.type(s.type);
}
template <class V>
void fields(V& v, typename V::template Ref<step::Recount> s) {
  v.name(s.stage, "a stage");
  v.factor(s.factor);
  v.number(s.zero, "a zero");
  v.arrow();
  v.name(s.name, "the new buffer's name");
  v.name(s.scope, "a scope");
}
template <class V>
void fields(V& v, typename V::template Ref<step::Unguard> s) {
  v.name(s.stage, "a stage");
  v.factor(s.factor);
}
template <class V>
void fields(V& v, typename V::template Ref<step::Widen> s) {
  v.name(s.stage, "a stage");
  v.names(s.loops, "a loop");
  v.numbers(s.factors, "a factor");
  v.combiner(s.combiner);
}
template <class V>
void fields(V& v, typename V::template Ref<step::Skew> s) {
  v.name(s.loop, "a reduce loop");
  v.number(s.extent, "the new extent");
  v.exprs(s.offset, "the offset");
}
template <class V>
void fields(V& v, typename V::template Ref<step::SetScope> s) {
  v.name(s.buffer, "a buffer");
  v.name(s.scope, "a scope");
}
template <class V>
void fields(V& v, typename V::template Ref<step::DecomposeReduction> s) {
  v.name(s.stage, "a stage");
  v.name(s.loop, "a loop");
}
template <class V>
void fields(V& v, typename V::template Ref<step::Partition> s) {
  v.name(s.loop, "a loop");
  v.number(s.front, "a number of first iterations");
  v.number(s.back, "a number of last iterations");
  v.arrow();
  v.name(s.front_suffix, "the first part's suffix");
  v.name(s.back_suffix, "the last part's suffix");
}
template <class V>
void fields(V& v, typename V::template Ref<step::Peel> s) {
  v.name(s.loop, "a loop");
  v.number(s.count, "a number of iterations");
  v.flag(s.back, "back");
  v.arrow();
  v.name(s.suffix, "the cut part's suffix");
}

template <class V>
void fields(V& v, typename V::template Ref<step::Tile> s) {
  v.names(s.loops, "a loop");
  v.numbers(s.factors, "a factor");
  v.arrow();
  v.names(s.names, "a new loop's name");
}
template <class V>
void fields(V& v, typename V::template Ref<step::ReverseComputeAt> s) {
  v.name(s.stage, "a stage");
  v.name(s.loop, "a loop");
}
template <class V>
void fields(V& v, typename V::template Ref<step::ComputeRoot> s) {
  v.name(s.stage, "a stage");
}
template <class V>
void fields(V& v, typename V::template Ref<step::RFactor> s) {
  v.name(s.stage, "a stage");
  v.name(s.loop, "a reduce loop");
  v.arrow();
  v.name(s.name, "the new buffer's name");
}
template <class V>
void fields(V& v, typename V::template Ref<step::Replicate> s) {
  v.names(s.buffers, "a buffer");
  v.number(s.copies, "a number of copies");
  v.exprs(s.copy, "the copies that other stages read");
  v.names_behind_arrow(s.loops, "a new loop's name");
}
template <class V>
void fields(V& v, typename V::template Ref<step::Hoist> s) {
  v.name(s.stage, "a stage");
  v.name(s.before, "the stage behind it");
}
template <class V>
void fields(V& v, typename V::template Ref<step::StorageAlign> s) {
  v.name(s.buffer, "a buffer");
  v.number(s.dim, "a dimension");
  v.number(s.factor, "a factor");
  v.optional_number(s.offset, 0, "an offset");
}
template <class V>
void fields(V& v, typename V::template Ref<step::Pad> s) {
  v.names(s.loops, "a loop");
  v.number(s.factor, "a factor");
  v.flag(s.repeat, "repeat");
  v.combiner(s.combiner);
}
template <class V>
void fields(V& v, typename V::template Ref<step::Layout> s) {
  v.name(s.buffer, "a buffer");
  v.names(s.dims, "a name for a dimension's index");
  v.arrow();
  v.exprs(s.map, "the new indices");
}
template <class V>
void fields(V& v, typename V::template Ref<step::Prefetch> s) {
  v.name(s.buffer, "a buffer");
  v.name(s.loop, "a loop");
  v.number(s.distance, "a number of iterations");
  v.optional_name(s.over, "over", "an inner loop");
  v.optional_number(s.locality, 3, "a locality");
}
template <class V>
void fields(V& v, typename V::template Ref<step::Annotate> s) {
  v.name(s.loop, "a loop");
  v.name(s.key, "a key");
  v.word(s.value, "a name or an integer");
}

template <class V>
void fields(V& v, typename V::template Ref<step::VirtualThread> s) {
  v.name(s.loop, "a loop");
}
template <class V>
void fields(V& v, typename V::template Ref<step::Bind> s) {
  v.name(s.loop, "a loop");
  v.name(s.axis, "an axis");
}
template <class V>
void fields(V& v, typename V::template Ref<step::Blockize> s) {
  v.name(s.loop, "a loop");
  v.name(s.name, "the block's name");
}
template <class V>
void fields(V& v, typename V::template Ref<step::Tensorize> s) {
  v.name(s.loop, "a loop");
  v.name(s.intrinsic, "an intrinsic");
  v.arrow();
  v.name(s.name, "the block's name");
}
template <class V>
void fields(V& v, typename V::template Ref<step::AsyncCopy> s) {
  v.name(s.stage, "a stage");
}
template <class V>
void fields(V& v, typename V::template Ref<step::Pipeline> s) {
  v.name(s.loop, "a loop");
  v.number(s.depth, "a depth");
  v.names(s.stages, "a stage");
}
template <class V>
void fields(V& v, typename V::template Ref<step::Roles> s) {
  v.name(s.loop, "a loop");
  v.number(s.depth, "a depth");
  v.parts(s.parts, "a part's name");
}

template <class V>
void fields(V& v, typename V::template Ref<step::Specialize> s) {
  v.name(s.loop, "a loop");
  v.number(s.value, "a symbol's value");
  v.names(s.symbols, "a symbol");
  v.arrow();
  v.name(s.suffix, "the copy's suffix");
}

template <size_t... I>
Step blank_step(size_t index, std::index_sequence<I...>) {
  const std::array<Step, sizeof...(I)> all = {Step(std::in_place_index<I>)...};
  return all[index];
}

Expected<Step> parse_step(Lexer& lexer) {
  const Token keyword = lexer.peek();
  const auto found = std::ranges::find_if(kKeywords,
                                          [&](const char* word) { return keyword.is(word); });
  if (found == kKeywords.end()) {
    std::string known;
    for (const char* word : kKeywords) known += std::string(known.empty() ? "" : ", ") + word;
    Diag diag = take_diags(lexer.error_here("unknown step '" + keyword.text + "'")).front();
    diag.notes.push_back("known steps: " + known);
    return make_error(std::move(diag));
  }
  lexer.next();
  Step step = blank_step(static_cast<size_t>(found - kKeywords.begin()),
                         std::make_index_sequence<std::variant_size_v<Step>>());
  Reader reader(lexer, keyword.line);
  std::visit([&](auto& s) { fields(reader, s); }, step);
  TW_TRY(reader.finish());
  return step;
}

}  // namespace

std::vector<StepArgument> arguments(const Step& step) {
  Lister lister;
  std::visit([&](const auto& s) { fields(lister, s); }, step);
  return lister.take();
}

const char* combiner_name(Combiner combiner) {
  switch (combiner) {
    case Combiner::none: break;
    case Combiner::add: return "add";
    case Combiner::mul: return "mul";
    case Combiner::min: return "min";
    case Combiner::max: return "max";
  }
  TW_UNREACHABLE("a step without a combiner");
}

const char* factor_name(Factor factor) { return factor == Factor::left ? "left" : "right"; }

const char* keyword(const Step& step) { return kKeywords[step.index()]; }

std::string print(const Step& step) {
  Printer printer(kKeywords[step.index()]);
  std::visit([&](const auto& s) { fields(printer, s); }, step);
  return printer.take();
}

std::string print(const Schedule& schedule) {
  std::string text = "schedule {\n";
  for (const Step& step : schedule.steps) text += "  " + print(step) + "\n";
  return text + "}\n";
}

Expected<Schedule> parse_schedule(std::string_view text, std::string_view file) {
  Lexer lexer(text, file);
  Schedule schedule;
  TW_TRY(lexer.expect("schedule"));
  TW_TRY(lexer.expect("{"));
  while (!lexer.at("}")) {
    if (lexer.peek().kind != TokenKind::identifier) return lexer.expected("a step or '}'");
    TW_ASSIGN(Step step, parse_step(lexer));
    schedule.steps.push_back(std::move(step));
  }
  TW_TRY(lexer.expect("}"));
  if (!lexer.at_end()) return lexer.expected("the end of the schedule");
  return schedule;
}

}  // namespace tw
