// Text form of graphs: printer, parser, content hash. graph.h shows the grammar. Parsed graphs are
// verified.
#include <algorithm>
#include <charconv>
#include <cstring>

#include "ir/graph/attributes.h"
#include "ir/graph/graph.h"
#include "ir/text.h"
#include "support/hash.h"

namespace tw {
namespace {

constexpr int64_t kInlineElements = 16;  // longer constants are written by hash
constexpr int kMaxDepth = 64;            // deepest nesting of regions

bool is_identifier(std::string_view name) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  auto any = [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '.'; };
  return !name.empty() && letter(name[0]) && std::ranges::all_of(name, any);
}
std::string name_text(std::string_view name) {
  return is_identifier(name) ? std::string(name) : quoted(name);
}

std::string element_text(const Tensor& t, int64_t i) {
  if (t.dtype == DType::u64) return std::to_string(static_cast<uint64_t>(t.int_at(i)));
  if (!is_float(t.dtype)) return std::to_string(t.int_at(i));
  char buffer[64];
  auto end = t.dtype == DType::f64
                 ? std::to_chars(buffer, buffer + sizeof buffer, t.at(i))
                 : std::to_chars(buffer, buffer + sizeof buffer, static_cast<float>(t.at(i)));
  return {buffer, end.ptr};
}

Error parse_element(Lexer& lexer, Tensor& t, int64_t i) {
  if (is_float(t.dtype)) {
    TW_ASSIGN(double value, lexer.number("a number"));
    t.set(i, value);
  } else if (t.dtype == DType::u64 && lexer.peek().kind == TokenKind::integer) {
    t.set_int(i, static_cast<int64_t>(lexer.next().integer));
  } else {
    Token token = lexer.peek();
    TW_ASSIGN(int64_t value, lexer.integer("an integer"));
    t.set_int(i, value);
    if (t.int_at(i) != value)
      return lexer.error_at(token,
                            llvm::formatv("{0} is not a {1}", value, dtype_name(t.dtype)).str());
  }
  return Error::success();
}

Expected<Tensor> parse_elements(Lexer& lexer, DType dtype, const std::vector<int64_t>& shape) {
  int64_t count = element_count(shape);
  if (count > kInlineElements)
    return lexer.error_here(
        llvm::formatv("more than {0} elements cannot be given inline", kInlineElements).str());
  Tensor t = Tensor::zeros(dtype, shape);
  TW_TRY(lexer.expect("["));
  for (int64_t i = 0; i < count; ++i) {
    if (i) TW_TRY(lexer.expect(","));
    TW_TRY(parse_element(lexer, t, i));
  }
  TW_TRY(lexer.expect("]"));
  return t;
}

// "[1.5, 2]" where the constant is small and reads back bit by bit, otherwise #"hash"
std::string constant_text(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  std::string by_hash = "#" + quoted(blob_hash(*value.constant));
  if (static_cast<int64_t>(value.constant->bytes.size()) >
      kInlineElements * dtype_bytes(value.type.dtype))
    return by_hash;
  Tensor t = graph.constant_tensor(id);
  std::string text = "[";
  for (int64_t i = 0; i < t.size(); ++i) text += (i ? ", " : "") + element_text(t, i);
  text += "]";
  Lexer lexer(text);
  Expected<Tensor> again = parse_elements(lexer, t.dtype, t.shape);
  if (again && again->bytes == t.bytes) return text;
  if (!again) llvm::consumeError(again.takeError());
  return by_hash;
}

class GraphParser {
 public:
  GraphParser(Lexer& lexer, const ConstantLookup& lookup, int depth = 0)
      : lexer_(lexer), lookup_(lookup), depth_(depth) {}

  Expected<Graph> parse() {
    TW_TRY(header());
    while (!lexer_.accept("}")) {
      if (lexer_.at("output")) TW_TRY(output());
      else if (lexer_.at("symbol")) TW_TRY(symbol());
      else TW_TRY(definition());
    }
    TW_TRY(verify(graph_));
    return std::move(graph_);
  }

 private:
  Expected<std::string> name(const char* what) {
    if (lexer_.peek().kind == TokenKind::string) return lexer_.string(what);
    return lexer_.identifier(what);
  }

  Error header() {
    TW_TRY(lexer_.expect("graph"));
    TW_TRY(lexer_.expect("@"));
    TW_ASSIGN(graph_.name, name("the graph's name"));
    TW_TRY(lexer_.expect("("));
    while (!lexer_.accept(")")) {
      if (!graph_.symbols.empty()) TW_TRY(lexer_.expect(","));
      TW_ASSIGN(std::string symbol, lexer_.identifier("a symbol"));
      if (lexer_.at(">=")) {
        SymbolLimits& limits = graph_.limits[symbol];
        lexer_.next();
        TW_ASSIGN(limits.least, lexer_.integer("the least value"));
        if (limits.least < least_of(symbol))
          return lexer_.error_here("a symbol that may be 0 has a name that ends in '.0'");
        TW_TRY(lexer_.expect("<="));
        TW_ASSIGN(limits.most, lexer_.integer("the largest value"));
        if (lexer_.accept("/")) { TW_ASSIGN(limits.step, lexer_.integer("the step")); }
        if (limits.step < 1) return lexer_.error_here("a step is at least 1");
      }
      graph_.symbols.push_back(std::move(symbol));
    }
    declared_ = graph_.symbols.size();
    return lexer_.expect("{");
  }

  Expected<TensorType> type() {
    Token token = lexer_.peek();
    TW_ASSIGN(std::string word, lexer_.identifier("a dtype"));
    std::optional<DType> dtype = dtype_from_name(word);
    if (!dtype) return lexer_.error_at(token, llvm::formatv("unknown dtype '{0}'", word).str());
    TensorType t{*dtype, {}, {}};
    TW_ASSIGN(t.shape, parse_shape(lexer_));
    if (lexer_.accept("@")) {
      TW_ASSIGN(int64_t axis, lexer_.integer("an axis"));
      TW_TRY(lexer_.expect(":"));
      TW_ASSIGN(int64_t block, lexer_.integer("a block"));
      if (axis < 0 || axis > 64 || block < 1 || block > 4096)
        return lexer_.error_at(token, "a layout that fits no shape");
      t.layout = {static_cast<int>(axis), block};
    }
    return located(token, check_type(t), t);
  }

  // Returns value, or the error located at the token.
  template <class T>
  Expected<T> located(const Token& token, Error error, T value) {
    if (!error) return value;
    return relocated(token, std::move(error));
  }
  Error relocated(const Token& token, Error error) {
    std::vector<Diag> diags = take_diags(std::move(error));
    for (Diag& diag : diags) {
      Diag place = take_diags(lexer_.error_at(token, ""))[0];
      if (diag.where.line == 0) diag.where = place.where;
    }
    return make_error(std::move(diags));
  }

  Expected<ValueId> operand() {
    if (lexer_.accept("_")) return ValueId{};
    TW_TRY(lexer_.expect("%"));
    Token token = lexer_.peek();
    TW_ASSIGN(std::string word, name("a value's name"));
    auto it = values_.find(word);
    if (it == values_.end())
      return lexer_.error_at(token,
                             llvm::formatv("%{0} is not defined above", name_text(word)).str());
    return it->second;
  }

  Error definition() {
    std::optional<Token> first;  // token of the first value's name
    std::vector<std::string> words;
    std::vector<TensorType> types;
    do {
      TW_ASSIGN(const Token token, left_side(words, types));
      if (!first) first = token;
    } while (lexer_.accept(","));
    TW_TRY(lexer_.expect("="));
    Token maker = lexer_.peek();
    const bool single = words.size() == 1;
    const std::string& word = words[0];
    const TensorType& t = types[0];
    ValueId id;
    if (single && lexer_.accept("input")) {
      id = graph_.add_input(word, t);
      if (graph_.symbols.size() != declared_)
        return lexer_.error_at(*first, llvm::formatv("symbol '{0}' is not declared in the header",
                                                     graph_.symbols.back())
                                           .str());
    } else if (single && lexer_.accept("const")) {
      TW_ASSIGN(id, constant(word, t));
    } else {
      return node(words, types, maker);
    }
    values_[word] = id;
    return Error::success();
  }

  // Parses "%v: f32[3]" in front of "=" or ",".
  Expected<Token> left_side(std::vector<std::string>& words, std::vector<TensorType>& types) {
    TW_TRY(lexer_.expect("%"));
    Token token = lexer_.peek();
    TW_ASSIGN(std::string word, name("a value's name"));
    if (word.empty()) return lexer_.error_at(token, "an empty name");
    if (values_.count(word) || std::ranges::count(words, word))
      return lexer_.error_at(token, llvm::formatv("%{0} is defined twice", name_text(word)).str());
    TW_TRY(lexer_.expect(":"));
    TW_ASSIGN(TensorType t, type());
    words.push_back(std::move(word));
    types.push_back(std::move(t));
    return token;
  }

  Expected<ValueId> constant(const std::string& word, const TensorType& t) {
    std::optional<std::vector<int64_t>> shape = static_shape(t.shape);
    if (t.dtype == DType::string || !shape || !t.layout.plain())
      return lexer_.error_here(llvm::formatv("a constant cannot be {0}", to_string(t)).str());
    if (!lexer_.accept("#")) {
      TW_ASSIGN(Tensor tensor, parse_elements(lexer_, t.dtype, *shape));
      return graph_.add_constant(word, tensor);
    }
    Token token = lexer_.peek();
    TW_ASSIGN(std::string hash, lexer_.string("a content hash"));
    std::optional<Blob> blob = lookup_ ? lookup_(hash, t) : std::nullopt;
    if (!blob)
      return lexer_.error_at(
          token, llvm::formatv("the bytes of constant #{0} are not known", quoted(hash)).str());
    int64_t wanted = element_count(*shape) * dtype_bytes(t.dtype);
    if (static_cast<int64_t>(blob->bytes.size()) != wanted)
      return lexer_.error_at(token,
                             llvm::formatv("constant #{0} has {1} bytes, {2} has {3}", quoted(hash),
                                           blob->bytes.size(), to_string(t), wanted)
                                 .str());
    return graph_.add_constant(word, t, std::move(*blob));
  }

  Error node(const std::vector<std::string>& words, const std::vector<TensorType>& types,
             const Token& maker) {
    if (maker.kind != TokenKind::identifier) return lexer_.expected("an operator");
    lexer_.next();
    TW_ASSIGN(OpAttrs attrs, attrs_of_op(lexer_, maker));
    TW_TRY(lexer_.expect("("));
    std::vector<ValueId> inputs;
    while (!lexer_.accept(")")) {
      if (!inputs.empty()) TW_TRY(lexer_.expect(","));
      TW_ASSIGN(ValueId input, operand());
      inputs.push_back(input);
    }
    std::string node_name, source;
    while (lexer_.peek().kind == TokenKind::identifier && !lexer_.at("output") &&
           !lexer_.at("symbol")) {
      bool is_name = lexer_.at("node");
      if (is_name || lexer_.at("source")) {
        lexer_.next();
        TW_TRY(lexer_.expect("="));
        TW_ASSIGN((is_name ? node_name : source), lexer_.string("a string"));
      } else {
        TW_TRY(parse_attr(lexer_, attrs, [&]() -> Expected<Graph> {
          if (depth_ >= kMaxDepth)
            return lexer_.error_here(
                llvm::formatv("regions nest deeper than {0}", kMaxDepth).str());
          return GraphParser(lexer_, lookup_, depth_ + 1).parse();
        }));
      }
    }
    count_axis_from_front(attrs, inputs);
    Expected<NodeId> id = graph_.add_node(std::move(attrs), std::move(inputs), words, node_name,
                                          source);
    if (!id) return relocated(maker, id.takeError());
    const std::vector<ValueId> outputs = graph_.node(*id).outputs();
    if (outputs.size() != words.size())
      return lexer_.error_at(maker, llvm::formatv("{0} values, but the operator gives {1}",
                                                  words.size(), outputs.size())
                                        .str());
    const bool chooses = std::holds_alternative<op::LayoutCast>(graph_.node(*id).attrs) ||
                         has_several_outputs(graph_.node(*id).attrs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      TensorType& inferred = graph_.value(outputs[i]).type;
      // Operators other than these may write any layout
      if (!chooses) inferred.layout = types[i].layout;
      if (!equal(inferred, types[i]))
        return lexer_.error_at(maker, llvm::formatv("type {0}, but the operator gives {1}",
                                                    to_string(types[i]), to_string(inferred))
                                          .str());
      values_[words[i]] = outputs[i];
    }
    return Error::success();
  }

  // Makes a negative axis count from the front, since passes and lowering take no other.
  void count_axis_from_front(OpAttrs& attrs, const std::vector<ValueId>& inputs) const {
    const auto rank = [&] {
      if (const auto* iota = std::get_if<op::Iota>(&attrs)) return iota->shape.size();
      return inputs.empty() || !inputs[0].valid() ? 0 : graph_.value(inputs[0]).type.shape.size();
    };
    std::visit(
        [&]<class Op>(Op& op) {
          if constexpr (OneOf<Op, op::Softmax, op::LayerNorm, op::ArgReduce, op::Concat, op::Gather,
                              op::Cumulate, op::Iota>)
            if (const auto all = static_cast<int64_t>(rank()); op.axis < 0 && op.axis >= -all)
              op.axis += all;
        },
        attrs);
  }

  // Parses symbol NAME = %value[ELEMENT], then "<= [DIM]", "== [DIM]", "for TEXT" or nothing.
  Error symbol() {
    lexer_.next();
    DataSymbol made;
    TW_ASSIGN(made.name, lexer_.identifier("a symbol"));
    TW_TRY(lexer_.expect("="));
    TW_ASSIGN(made.value, operand());
    if (!made.value.valid()) return lexer_.error_here("a symbol needs a value");
    TW_TRY(lexer_.expect("["));
    TW_ASSIGN(made.element, lexer_.integer("an element's number"));
    TW_TRY(lexer_.expect("]"));
    for (const auto& [word, limit] :
         {std::pair("<=", &made.bound), std::pair("==", &made.equals)}) {
      if (!lexer_.accept(word)) continue;
      Token token = lexer_.peek();
      // Without the bracket, a '%' on the next line would continue the expression
      TW_TRY(lexer_.expect("["));
      TW_ASSIGN(*limit, parse_expr_of(lexer_, DType::i64, {}));
      TW_TRY(lexer_.expect("]"));
      if (Error error = check_dim_expr(*limit)) return relocated(token, std::move(error));
    }
    if (lexer_.accept("for")) { TW_ASSIGN(made.needed_by, lexer_.string("a node")); }
    graph_.data_symbols.push_back(std::move(made));
    return Error::success();
  }

  Error output() {
    lexer_.next();
    TW_ASSIGN(ValueId id, operand());
    if (!id.valid()) return lexer_.error_here("an output needs a value");
    std::string word = graph_.value(id).name;
    if (lexer_.accept("as")) { TW_ASSIGN(word, lexer_.string("the output's name")); }
    graph_.add_output(id, std::move(word));
    return Error::success();
  }

  Lexer& lexer_;
  const ConstantLookup& lookup_;
  int depth_;
  Graph graph_;
  size_t declared_ = 0;
  std::map<std::string, ValueId, std::less<>> values_;
};

// Constants that a live node or an output uses, sorted by id
std::vector<ValueId> used_constants(const Graph& graph) {
  std::vector<ValueId> out;
  auto use = [&](ValueId id) {
    if (graph.is_constant(id)) out.push_back(id);
  };
  for (NodeId id : graph.order()) std::ranges::for_each(graph.node(id).inputs, use);
  for (const Graph::Output& output : graph.outputs()) use(output.value);
  for (const DataSymbol& symbol : graph.data_symbols) use(symbol.value);
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// Prints "[0] <= [80]".
std::string limits(const DataSymbol& symbol) {
  std::string text = "[" + std::to_string(symbol.element) + "]";
  if (symbol.bound.defined()) text += " <= [" + to_string(symbol.bound) + "]";
  if (symbol.equals.defined()) text += " == [" + to_string(symbol.equals) + "]";
  if (!symbol.needed_by.empty()) text += " for " + quoted(symbol.needed_by);
  return text;
}

std::string join(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& item : list) text += (text.empty() ? "" : ", ") + item;
  return text;
}

std::string header_symbols(const Graph& graph) {
  std::vector<std::string> list;
  for (const std::string& symbol : graph.symbols) {
    const auto found = graph.limits.find(symbol);
    list.push_back(
        found == graph.limits.end()
            ? symbol
            : symbol + " >= " + std::to_string(found->second.least) +
                  " <= " + std::to_string(found->second.most) +
                  (found->second.step > 1 ? " / " + std::to_string(found->second.step) : ""));
  }
  return join(list);
}

}  // namespace

std::string print(const Graph& graph) {
  std::string text = "graph @" + name_text(graph.name) + "(" + header_symbols(graph) + ") {\n";
  auto reference = [&](ValueId id) {
    return id.valid() ? "%" + name_text(graph.value(id).name) : std::string("_");
  };
  auto typed = [&](ValueId id) { return reference(id) + ": " + to_string(graph.value(id).type); };
  auto left = [&](ValueId id) { return "  " + typed(id) + " = "; };
  auto symbols_of = [&](ValueId id) {
    std::string lines;
    for (const DataSymbol& symbol : graph.data_symbols)
      if (symbol.value == id)
        lines += "  symbol " + symbol.name + " = " + reference(id) + limits(symbol) + "\n";
    return lines;
  };
  for (ValueId id : graph.inputs()) text += left(id) + "input\n" + symbols_of(id);
  for (ValueId id : used_constants(graph))
    text += left(id) + "const " + constant_text(graph, id) + "\n" + symbols_of(id);
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    std::vector<std::string> operands;
    for (ValueId input : node.inputs) operands.push_back(reference(input));
    text += "  " + typed(node.output);
    for (ValueId output : node.extra) text += ", " + typed(output);
    text += std::string(" = ") + op_info(node.attrs).name + "(" + join(operands) + ")" +
            print_attrs(node.attrs);
    if (!node.name.empty()) text += " node=" + quoted(node.name);
    if (!node.source.empty()) text += " source=" + quoted(node.source);
    text += "\n";
    for (ValueId output : node.outputs()) text += symbols_of(output);
  }
  for (const Graph::Output& output : graph.outputs()) {
    text += "  output " + reference(output.value);
    if (output.name != graph.value(output.value).name) text += " as " + quoted(output.name);
    text += "\n";
  }
  return text + "}\n";
}

Expected<Graph> parse_graph(std::string_view text, std::string_view file,
                            const ConstantLookup& lookup) {
  Lexer lexer(text, file);
  TW_ASSIGN(Graph graph, GraphParser(lexer, lookup).parse());
  if (!lexer.at_end()) return lexer.expected("the end of the text");
  return graph;
}

// Hashes the constant's bytes.
std::string blob_hash(const Blob& blob) {
  return short_hash({reinterpret_cast<const char*>(blob.bytes.data()), blob.bytes.size()});
}

// Hashes a text that names values by number, so renaming inner values changes nothing. The names of
// inputs, outputs and symbols count: they are the interface.
std::string graph_hash(const Graph& graph) {
  std::map<ValueId, size_t> numbers;
  std::string text = header_symbols(graph) + "\n";
  auto type = [&](ValueId id) { return to_string(graph.value(id).type); };
  auto number = [&](ValueId id) -> std::string {
    if (!id.valid()) return "_";
    auto [it, fresh] = numbers.try_emplace(id, numbers.size());
    if (fresh && graph.is_constant(id))
      text += std::to_string(it->second) + " const " + type(id) + " " +
              blob_hash(*graph.value(id).constant) + "\n";
    return std::to_string(it->second);
  };
  for (ValueId id : graph.inputs())
    text += number(id) + " input " + quoted(graph.value(id).name) + " " + type(id) + "\n";
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    std::string line = op_info(node.attrs).name;
    for (ValueId input : node.inputs) line += " " + number(input);
    line += print_attrs(node.attrs) + " -> ";
    for (ValueId output : node.outputs())
      line += (output == node.output ? "" : ", ") + number(output) + " " + type(output);
    text += line + "\n";
  }
  for (const DataSymbol& symbol : graph.data_symbols) {
    std::string line = "symbol " + symbol.name + " " + number(symbol.value) + limits(symbol) + "\n";
    text += line;
  }
  for (const Graph::Output& output : graph.outputs()) {
    std::string line = "output " + quoted(output.name) + " " + number(output.value) + "\n";
    text += line;
  }
  return sha256_hex(text);
}

}  // namespace tw
