#include "ir/graph/attributes.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "ir/graph/graph.h"
#include "ir/text.h"

namespace tw {
namespace {

// Words of the enums in the text form, in the order of their values.
constexpr const char* kPoolKinds[] = {"max", "average"};
constexpr const char* kReduceKinds[] = {"sum", "mean", "max", "min", "prod"};
constexpr const char* kPadModes[] = {"constant", "reflect", "edge", "wrap"};
constexpr const char* kResizeModes[] = {"nearest", "linear", "cubic"};
constexpr const char* kCoordinateModes[] = {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric"};
constexpr const char* kNearestModes[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};

constexpr const char* kRecurrentKinds[] = {"rnn", "gru", "lstm"};
constexpr const char* kGateFunctions[] = {"sigmoid", "tanh", "relu", "affine", "leaky_relu", "thresholded_relu", "scaled_tanh", "hard_sigmoid", "elu",
                                          "softsign", "softplus"};

std::span<const char* const> words(PoolKind) { return kPoolKinds; }
std::span<const char* const> words(ReduceKind) { return kReduceKinds; }
std::span<const char* const> words(PadMode) { return kPadModes; }
std::span<const char* const> words(ResizeMode) { return kResizeModes; }
std::span<const char* const> words(CoordinateMode) { return kCoordinateModes; }
std::span<const char* const> words(NearestMode) { return kNearestModes; }
std::span<const char* const> words(RecurrentKind) { return kRecurrentKinds; }
std::span<const char* const> words(GateFunction) { return kGateFunctions; }
template <class E, size_t N>
std::array<const char*, N> op_words() {
  std::array<const char*, N> out;
  for (size_t i = 0; i < N; ++i) out[i] = op_name(static_cast<E>(i));
  return out;
}
std::span<const char* const> words(UnaryOp) {
  static const auto list = op_words<UnaryOp, kUnaryOpCount>();
  return list;
}
std::span<const char* const> words(BinaryOp) {
  static const auto list = op_words<BinaryOp, kBinaryOpCount>();
  return list;
}
std::span<const char* const> words(DType) {
  static const auto list = [] {
    std::array<const char*, kDTypeCount> out;
    for (int i = 0; i < kDTypeCount; ++i) out[static_cast<size_t>(i)] = dtype_name(static_cast<DType>(i));
    return out;
  }();
  return list;
}

std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(int64_t value) { return std::to_string(value); }
std::string text_of(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}
std::string text_of(const Expr& value) { return to_string(value); }
template <class E>
  requires std::is_enum_v<E>
std::string text_of(E value) {
  return words(value)[static_cast<size_t>(value)];
}
template <class T>
std::string text_of(const std::vector<T>& list) {
  std::string text = "[";
  for (size_t i = 0; i < list.size(); ++i) text += (i ? "," : "") + text_of(list[i]);
  return text + "]";
}

template <class T>
constexpr bool kNamesTheOperator = std::is_same_v<T, UnaryOp> || std::is_same_v<T, BinaryOp> || std::is_same_v<T, DType> ||
                                   std::is_same_v<T, PoolKind> || std::is_same_v<T, ReduceKind> || std::is_same_v<T, RecurrentKind>;

struct Field { const char* name; std::string text; bool always; };
struct FieldTexts {
  std::vector<Field> list;
  template <class T>
  void operator()(const char* name, T& value) {
    list.push_back({name, text_of(value), kNamesTheOperator<T>});
  }
};
std::vector<Field> field_texts(OpAttrs attrs) {
  FieldTexts texts;
  std::visit([&](auto& op) { op.fields(texts); }, attrs);
  return std::move(texts.list);
}

template <size_t... I>
std::array<OpAttrs, kOpCount> make_defaults(std::index_sequence<I...>) {
  return {OpAttrs(std::in_place_index<I>)...};
}
OpAttrs default_attrs(size_t index) { return make_defaults(std::make_index_sequence<kOpCount>())[index]; }

Error parse_value(Lexer& lexer, int64_t& value) {
  TW_ASSIGN(value, lexer.integer("an integer"));
  return Error::success();
}
Error parse_value(Lexer& lexer, double& value) {
  TW_ASSIGN(value, lexer.number("a number"));
  return Error::success();
}
Error parse_value(Lexer& lexer, bool& value) {
  if (!lexer.at("true") && !lexer.at("false")) return lexer.expected("'true' or 'false'");
  value = lexer.next().text == "true";
  return Error::success();
}
Error parse_value(Lexer& lexer, Expr& value) {
  TW_ASSIGN(value, parse_expr_of(lexer, DType::i64, {}));
  return Error::success();
}
template <class E>
  requires std::is_enum_v<E>
Error parse_value(Lexer& lexer, E& value) {
  std::span<const char* const> list = words(value);
  for (size_t i = 0; i < list.size(); ++i)
    if (lexer.accept(list[i])) {
      value = static_cast<E>(i);
      return Error::success();
    }
  std::string wanted = "one of";
  for (const char* word : list) wanted += std::string(" ") + word;
  return lexer.expected(wanted);
}
template <class T>
Error parse_value(Lexer& lexer, std::vector<T>& list) {
  TW_TRY(lexer.expect("["));
  list.clear();
  while (!lexer.accept("]")) {
    if (!list.empty()) TW_TRY(lexer.expect(","));
    T value{};
    TW_TRY(parse_value(lexer, value));
    list.push_back(std::move(value));
  }
  return Error::success();
}

struct FieldParser {
  Lexer& lexer;
  const std::string& wanted;
  bool found = false;
  Error error = Error::success();
  template <class T>
  void operator()(const char* name, T& value) {
    if (found || wanted != name) return;
    found = true;
    llvm::cantFail(std::move(error));
    error = parse_value(lexer, value);
  }
};

struct DimBinder {
  const SymbolValues& values;
  template <class T>
  void operator()(const char*, T& value) {
    if constexpr (std::is_same_v<T, Shape>) value = bind_symbols(value, values);
  }
};

}  // namespace

std::string print_attrs(const OpAttrs& attrs) {
  std::vector<Field> fields = field_texts(attrs), defaults = field_texts(default_attrs(attrs.index()));
  std::string text;
  for (size_t i = 0; i < fields.size(); ++i)
    if (fields[i].always || fields[i].text != defaults[i].text) text += std::string(" ") + fields[i].name + "=" + fields[i].text;
  return text;
}

bool equal(const OpAttrs& a, const OpAttrs& b) { return a.index() == b.index() && print_attrs(a) == print_attrs(b); }

Shape bind_symbols(const Shape& shape, const SymbolValues& values) {
  Shape out;
  for (const Expr& dim : shape)
    out.push_back(simplify_dim(rewrite(dim, [&](const Expr& e) {
      if (e->kind != ExprKind::var) return Expr();
      auto it = values.find(e->name);
      return it == values.end() ? Expr() : Expr(it->second);
    })));
  return out;
}

OpAttrs bind_symbols(const OpAttrs& attrs, const SymbolValues& values) {
  OpAttrs out = attrs;
  DimBinder binder{values};
  std::visit([&](auto& op) { op.fields(binder); }, out);
  return out;
}

Expected<OpAttrs> attrs_of_op(Lexer& lexer, const Token& name) {
  for (size_t i = 0; i < kOpCount; ++i)
    if (name.text == op_table()[i].name) return default_attrs(i);
  std::string known;
  for (const OpInfo& info : op_table()) known += (known.empty() ? "" : " ") + std::string(info.name);
  return lexer.error_at(name, llvm::formatv("unknown operator '{0}', expected one of {1}", name.text, known).str());
}

Error parse_attr(Lexer& lexer, OpAttrs& attrs) {
  Token name = lexer.peek();
  TW_ASSIGN(std::string wanted, lexer.identifier("an attribute"));
  FieldParser parser{.lexer = lexer, .wanted = wanted};
  size_t value_at = lexer.position();
  if (Error e = lexer.expect("=")) {
    llvm::consumeError(std::move(parser.error));
    return e;
  }
  std::visit([&](auto& op) { op.fields(parser); }, attrs);
  if (parser.found) return std::move(parser.error);
  llvm::consumeError(std::move(parser.error));
  lexer.rewind(value_at);
  return lexer.error_at(name, llvm::formatv("{0} has no attribute '{1}'", op_info(attrs).name, wanted).str());
}

Expected<Shape> parse_shape(Lexer& lexer) {
  Shape shape;
  TW_TRY(parse_value(lexer, shape));
  return shape;
}

}  // namespace tw
