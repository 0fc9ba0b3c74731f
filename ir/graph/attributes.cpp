#include "ir/graph/attributes.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "ir/graph/externs.h"
#include "ir/graph/graph.h"
#include "ir/storage_types.h"
#include "ir/text.h"
#include "support/enum_words.h"

namespace tw {

static constexpr const char* word(PoolKind value) {
  switch (value) {
    case PoolKind::max: return "max";
    case PoolKind::average: return "average";
    case PoolKind::sum: return "sum";
  }
  return nullptr;
}
static constexpr const char* word(ReduceKind value) {
  switch (value) {
    case ReduceKind::sum: return "sum";
    case ReduceKind::mean: return "mean";
    case ReduceKind::max: return "max";
    case ReduceKind::min: return "min";
    case ReduceKind::prod: return "prod";
  }
  return nullptr;
}
static constexpr const char* word(PadMode value) {
  switch (value) {
    case PadMode::constant: return "constant";
    case PadMode::reflect: return "reflect";
    case PadMode::edge: return "edge";
    case PadMode::wrap: return "wrap";
  }
  return nullptr;
}
static constexpr const char* word(ResizeMode value) {
  switch (value) {
    case ResizeMode::nearest: return "nearest";
    case ResizeMode::linear: return "linear";
    case ResizeMode::cubic: return "cubic";
  }
  return nullptr;
}
static constexpr const char* word(CoordinateMode value) {
  switch (value) {
    case CoordinateMode::half_pixel: return "half_pixel";
    case CoordinateMode::asymmetric: return "asymmetric";
    case CoordinateMode::align_corners: return "align_corners";
    case CoordinateMode::pytorch_half_pixel: return "pytorch_half_pixel";
    case CoordinateMode::half_pixel_symmetric: return "half_pixel_symmetric";
    case CoordinateMode::tf_half_pixel_for_nn: return "tf_half_pixel_for_nn";
  }
  return nullptr;
}
static constexpr const char* word(NearestMode value) {
  switch (value) {
    case NearestMode::round_prefer_floor: return "round_prefer_floor";
    case NearestMode::round_prefer_ceil: return "round_prefer_ceil";
    case NearestMode::floor: return "floor";
    case NearestMode::ceil: return "ceil";
  }
  return nullptr;
}
static constexpr const char* word(RecurrentKind value) {
  switch (value) {
    case RecurrentKind::rnn: return "rnn";
    case RecurrentKind::gru: return "gru";
    case RecurrentKind::lstm: return "lstm";
  }
  return nullptr;
}
static constexpr const char* word(GateFunction value) {
  switch (value) {
    case GateFunction::sigmoid: return "sigmoid";
    case GateFunction::tanh: return "tanh";
    case GateFunction::relu: return "relu";
    case GateFunction::affine: return "affine";
    case GateFunction::leaky_relu: return "leaky_relu";
    case GateFunction::thresholded_relu: return "thresholded_relu";
    case GateFunction::scaled_tanh: return "scaled_tanh";
    case GateFunction::hard_sigmoid: return "hard_sigmoid";
    case GateFunction::elu: return "elu";
    case GateFunction::softsign: return "softsign";
    case GateFunction::softplus: return "softplus";
  }
  return nullptr;
}

namespace {

template <class E>
std::span<const char* const> words(E) {
  static constexpr auto list = enum_words<E>();
  return list;
}
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
    for (int i = 0; i < kDTypeCount; ++i)
      out[static_cast<size_t>(i)] = dtype_name(static_cast<DType>(i));
    return out;
  }();
  return list;
}

std::span<const char* const> words(ExternFunction) {
  static const auto list = [] {
    std::array<const char*, kExternCount> out;
    for (size_t i = 0; i < kExternCount; ++i)
      out[i] = extern_info(static_cast<ExternFunction>(i)).name;
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
std::string text_of(const std::string& value) { return quoted(value); }
// The region's lines are indented one step further than the node's.
std::string text_of(const Region& region) {
  std::string text;
  for (char c : region.graph ? print(*region.graph) : std::string())
    text += c == '\n' ? std::string("\n  ") : std::string(1, c);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n')) text.pop_back();
  return text;
}
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
constexpr bool kNamesTheOperator = std::is_same_v<T, UnaryOp> || std::is_same_v<T, BinaryOp> ||
                                   std::is_same_v<T, DType> || std::is_same_v<T, PoolKind> ||
                                   std::is_same_v<T, ReduceKind> ||
                                   std::is_same_v<T, RecurrentKind> ||
                                   std::is_same_v<T, ExternFunction>;

struct Field {
  const char* name;
  std::string text;
  bool always;
};
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
OpAttrs default_attrs(size_t index) {
  return make_defaults(std::make_index_sequence<kOpCount>())[index];
}

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
Error parse_value(Lexer& lexer, std::string& value) {
  TW_ASSIGN(value, lexer.string("a string"));
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
  const std::function<Expected<Graph>()>& graph;
  bool found = false;
  Error error = Error::success();
  template <class T>
  void operator()(const char* name, T& value) {
    if (found || wanted != name) return;
    found = true;
    llvm::cantFail(std::move(error));
    if constexpr (std::is_same_v<T, Region>) error = parse_region(value);
    else error = parse_value(lexer, value);
  }
  Error parse_region(Region& region) {
    TW_ASSIGN(Graph parsed, graph());
    region.graph = std::make_shared<const Graph>(std::move(parsed));
    return Error::success();
  }
};

struct DimMapper {
  const std::function<Expr(const Expr&)>& fn;
  template <class T>
  void operator()(const char*, T& value) {
    if constexpr (std::is_same_v<T, Shape>)
      for (Expr& dim : value) dim = fn(dim);
    if constexpr (std::is_same_v<T, Region>)
      if (value.graph) value.graph = std::make_shared<const Graph>(map_dims(*value.graph, fn));
  }
};
struct RegionVisitor {
  const std::function<void(Region&)>& fn;
  template <class T>
  void operator()(const char*, T& value) {
    if constexpr (std::is_same_v<T, Region>)
      if (value.graph) fn(value);
  }
};

}  // namespace

std::string print_attrs(const OpAttrs& attrs) {
  std::vector<Field> fields = field_texts(attrs),
                     defaults = field_texts(default_attrs(attrs.index()));
  std::string text;
  for (size_t i = 0; i < fields.size(); ++i)
    if (fields[i].always || fields[i].text != defaults[i].text)
      text += std::string(" ") + fields[i].name + "=" + fields[i].text;
  return text;
}

bool equal(const OpAttrs& a, const OpAttrs& b) {
  return a.index() == b.index() && print_attrs(a) == print_attrs(b);
}

static Expr bind_dim(const Expr& dim, const SymbolValues& values) {
  return simplify_dim(rewrite(dim, [&](const Expr& e) {
    const std::string* name = var_name(e);
    if (!name) return Expr();
    auto it = values.find(*name);
    return it == values.end() ? Expr() : Expr(it->second);
  }));
}

Shape bind_symbols(const Shape& shape, const SymbolValues& values) {
  Shape out;
  for (const Expr& dim : shape) out.push_back(bind_dim(dim, values));
  return out;
}

OpAttrs bind_symbols(const OpAttrs& attrs, const SymbolValues& values) {
  return map_dims(attrs, [&](const Expr& dim) { return bind_dim(dim, values); });
}

OpAttrs map_dims(const OpAttrs& attrs, const std::function<Expr(const Expr&)>& fn) {
  OpAttrs out = attrs;
  DimMapper mapper{fn};
  std::visit([&](auto& op) { op.fields(mapper); }, out);
  return out;
}

Graph map_dims(const Graph& graph, const std::function<Expr(const Expr&)>& fn) {
  Graph out = graph;
  for (size_t i = 0; i < out.value_count(); ++i)
    for (Expr& dim : out.value(ValueId{static_cast<int32_t>(i)}).type.shape) dim = fn(dim);
  for (size_t i = 0; i < out.node_count(); ++i) {
    Node& node = out.node(NodeId{static_cast<int32_t>(i)});
    node.attrs = map_dims(node.attrs, fn);
  }
  for (DataSymbol& symbol : out.data_symbols)
    for (Expr* limit : {&symbol.bound, &symbol.equals})
      if (limit->defined()) *limit = fn(*limit);
  return out;
}

Graph bind_symbols(const Graph& graph, const SymbolValues& values) {
  Graph out = map_dims(graph, [&](const Expr& dim) { return bind_dim(dim, values); });
  for (size_t i = 0; i < out.node_count(); ++i)  // graphs of regions use symbols too
    for_each_region(out.node(NodeId{static_cast<int32_t>(i)}).attrs, [&](Region& region) {
      region.graph = std::make_shared<const Graph>(bind_symbols(*region.graph, values));
    });
  std::erase_if(out.symbols, [&](const std::string& symbol) { return values.count(symbol) > 0; });
  return out;
}

void for_each_region(OpAttrs& attrs, const std::function<void(Region&)>& fn) {
  RegionVisitor visitor{fn};
  std::visit([&](auto& op) { op.fields(visitor); }, attrs);
}

std::vector<const Graph*> regions_of(const OpAttrs& attrs) {
  std::vector<const Graph*> regions;
  if (!has_several_outputs(attrs)) return regions;
  OpAttrs copy = attrs;
  for_each_region(copy, [&](Region& region) { regions.push_back(region.graph.get()); });
  return regions;
}

std::vector<Expr> dims_of(const OpAttrs& attrs) {
  std::vector<Expr> dims;
  map_dims(attrs, [&](const Expr& dim) {
    dims.push_back(dim);
    return dim;
  });
  return dims;
}

Expected<OpAttrs> attrs_of_op(Lexer& lexer, const Token& name) {
  for (size_t i = 0; i < kOpCount; ++i)
    if (name.text == op_table()[i].name) return default_attrs(i);
  std::string known;
  for (const OpInfo& info : op_table())
    known += (known.empty() ? "" : " ") + std::string(info.name);
  return lexer.error_at(
      name, llvm::formatv("unknown operator '{0}', expected one of {1}", name.text, known).str());
}

Error parse_attr(Lexer& lexer, OpAttrs& attrs, const std::function<Expected<Graph>()>& graph) {
  Token name = lexer.peek();
  TW_ASSIGN(std::string wanted, lexer.identifier("an attribute"));
  FieldParser parser{.lexer = lexer, .wanted = wanted, .graph = graph};
  size_t value_at = lexer.position();
  if (Error e = lexer.expect("=")) {
    llvm::consumeError(std::move(parser.error));
    return e;
  }
  std::visit([&](auto& op) { op.fields(parser); }, attrs);
  if (parser.found) return std::move(parser.error);
  llvm::consumeError(std::move(parser.error));
  lexer.rewind(value_at);
  return lexer.error_at(
      name, llvm::formatv("{0} has no attribute '{1}'", op_info(attrs).name, wanted).str());
}

Expected<Shape> parse_shape(Lexer& lexer) {
  Shape shape;
  TW_TRY(parse_value(lexer, shape));
  return shape;
}

}  // namespace tw
