// Text form of graphs: printer, parser, content hash. The grammar is shown in graph.h; parsed graphs are verified.
#include <algorithm>
#include <charconv>
#include <cstring>

#include "ir/graph/attributes.h"
#include "ir/graph/graph.h"
#include "ir/text.h"
#include "support/hash.h"

namespace tw {
namespace {

constexpr int64_t kInlineElements = 16;  // larger constants are written by hash

bool is_identifier(std::string_view name) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  auto any = [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '.'; };
  return !name.empty() && letter(name[0]) && std::ranges::all_of(name, any);
}
std::string name_text(std::string_view name) { return is_identifier(name) ? std::string(name) : quoted(name); }

std::string blob_hash(const Blob& blob) {
  return short_hash({reinterpret_cast<const char*>(blob.bytes.data()), blob.bytes.size()});
}

std::string element_text(const Tensor& t, int64_t i) {
  if (t.dtype == DType::u64) return std::to_string(static_cast<uint64_t>(t.int_at(i)));
  if (!is_float(t.dtype)) return std::to_string(t.int_at(i));
  char buffer[64];
  auto end = t.dtype == DType::f64 ? std::to_chars(buffer, buffer + sizeof buffer, t.at(i))
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
    if (t.int_at(i) != value) return lexer.error_at(token, llvm::formatv("{0} is not a {1}", value, dtype_name(t.dtype)).str());
  }
  return Error::success();
}

Expected<Tensor> parse_elements(Lexer& lexer, DType dtype, const std::vector<int64_t>& shape) {
  int64_t count = element_count(shape);
  if (count > kInlineElements) return lexer.error_here(llvm::formatv("more than {0} elements cannot be given inline", kInlineElements).str());
  Tensor t = Tensor::zeros(dtype, shape);
  TW_TRY(lexer.expect("["));
  for (int64_t i = 0; i < count; ++i) {
    if (i) TW_TRY(lexer.expect(","));
    TW_TRY(parse_element(lexer, t, i));
  }
  TW_TRY(lexer.expect("]"));
  return t;
}

// "[1.5, 2]" when the constant is small and reads back bit by bit, else #"hash".
std::string constant_text(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  std::string by_hash = "#" + quoted(blob_hash(*value.constant));
  if (static_cast<int64_t>(value.constant->bytes.size()) > kInlineElements * dtype_bytes(value.type.dtype)) return by_hash;
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
  GraphParser(std::string_view text, std::string_view file, const std::function<std::optional<Blob>(std::string_view)>& lookup)
      : lexer_(text, file), lookup_(lookup) {}

  Expected<Graph> parse() {
    TW_TRY(header());
    while (!lexer_.accept("}")) {
      if (lexer_.at("output")) TW_TRY(output());
      else TW_TRY(definition());
    }
    if (!lexer_.at_end()) return lexer_.expected("the end of the text");
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
      if (axis < 0 || axis > 64 || block < 1 || block > 4096) return lexer_.error_at(token, "a layout that fits no shape");
      t.layout = {static_cast<int>(axis), block};
    }
    return located(token, check_type(t), t);
  }

  // value, or the error with the token's place where it has none.
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
    if (it == values_.end()) return lexer_.error_at(token, llvm::formatv("%{0} is not defined above", name_text(word)).str());
    return it->second;
  }

  Error definition() {
    TW_TRY(lexer_.expect("%"));
    Token token = lexer_.peek();
    TW_ASSIGN(std::string word, name("a value's name"));
    if (word.empty()) return lexer_.error_at(token, "an empty name");
    if (values_.count(word)) return lexer_.error_at(token, llvm::formatv("%{0} is defined twice", name_text(word)).str());
    TW_TRY(lexer_.expect(":"));
    TW_ASSIGN(TensorType t, type());
    TW_TRY(lexer_.expect("="));
    Token maker = lexer_.peek();
    ValueId id;
    if (lexer_.accept("input")) {
      id = graph_.add_input(word, t);
      if (graph_.symbols.size() != declared_)
        return lexer_.error_at(token, llvm::formatv("symbol '{0}' is not declared in the header", graph_.symbols.back()).str());
    } else if (lexer_.accept("const")) {
      TW_ASSIGN(id, constant(word, t));
    } else {
      TW_ASSIGN(id, node(word, t, maker));
    }
    values_[word] = id;
    return Error::success();
  }

  Expected<ValueId> constant(const std::string& word, const TensorType& t) {
    std::optional<std::vector<int64_t>> shape = static_shape(t.shape);
    if (!shape || !t.layout.plain()) return lexer_.error_here(llvm::formatv("a constant cannot be {0}", to_string(t)).str());
    if (!lexer_.accept("#")) {
      TW_ASSIGN(Tensor tensor, parse_elements(lexer_, t.dtype, *shape));
      return graph_.add_constant(word, tensor);
    }
    Token token = lexer_.peek();
    TW_ASSIGN(std::string hash, lexer_.string("a content hash"));
    std::optional<Blob> blob = lookup_ ? lookup_(hash) : std::nullopt;
    if (!blob) return lexer_.error_at(token, llvm::formatv("the bytes of constant #{0} are not known", quoted(hash)).str());
    int64_t wanted = element_count(*shape) * dtype_bytes(t.dtype);
    if (static_cast<int64_t>(blob->bytes.size()) != wanted)
      return lexer_.error_at(token, llvm::formatv("constant #{0} has {1} bytes, {2} has {3}", quoted(hash), blob->bytes.size(), to_string(t), wanted).str());
    return graph_.add_constant(word, t, std::move(*blob));
  }

  Expected<ValueId> node(const std::string& word, const TensorType& t, const Token& maker) {
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
    while (lexer_.peek().kind == TokenKind::identifier && !lexer_.at("output")) {
      bool is_name = lexer_.at("node");
      if (is_name || lexer_.at("source")) {
        lexer_.next();
        TW_TRY(lexer_.expect("="));
        TW_ASSIGN((is_name ? node_name : source), lexer_.string("a string"));
      } else {
        TW_TRY(parse_attr(lexer_, attrs));
      }
    }
    Expected<ValueId> id = graph_.add(std::move(attrs), std::move(inputs), word, node_name, source);
    if (!id) return relocated(maker, id.takeError());
    TensorType& inferred = graph_.value(*id).type;
    if (!std::holds_alternative<op::LayoutCast>(graph_.def(*id)->attrs)) inferred.layout = t.layout;   // any operator may write any layout
    if (!equal(inferred, t)) return lexer_.error_at(maker, llvm::formatv("type {0}, but the operator gives {1}", to_string(t), to_string(inferred)).str());
    return *id;
  }

  Error output() {
    lexer_.next();
    TW_ASSIGN(ValueId id, operand());
    if (!id.valid()) return lexer_.error_here("an output needs a value");
    std::string word = graph_.value(id).name;
    if (lexer_.accept("as")) {
      TW_ASSIGN(word, lexer_.string("the output's name"));
    }
    graph_.add_output(id, std::move(word));
    return Error::success();
  }

  Lexer lexer_;
  const std::function<std::optional<Blob>(std::string_view)>& lookup_;
  Graph graph_;
  size_t declared_ = 0;
  std::map<std::string, ValueId, std::less<>> values_;
};

// Constants that a live node or an output uses, in the order of their ids.
std::vector<ValueId> used_constants(const Graph& graph) {
  std::vector<ValueId> out;
  auto use = [&](ValueId id) {
    if (graph.is_constant(id)) out.push_back(id);
  };
  for (NodeId id : graph.order()) std::ranges::for_each(graph.node(id).inputs, use);
  for (const Graph::Output& output : graph.outputs()) use(output.value);
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::string join(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& item : list) text += (text.empty() ? "" : ", ") + item;
  return text;
}

}  // namespace

std::string print(const Graph& graph) {
  std::string text = "graph @" + name_text(graph.name) + "(" + join(graph.symbols) + ") {\n";
  auto reference = [&](ValueId id) { return id.valid() ? "%" + name_text(graph.value(id).name) : std::string("_"); };
  auto left = [&](ValueId id) { return "  " + reference(id) + ": " + to_string(graph.value(id).type) + " = "; };
  for (ValueId id : graph.inputs()) text += left(id) + "input\n";
  for (ValueId id : used_constants(graph)) text += left(id) + "const " + constant_text(graph, id) + "\n";
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    std::vector<std::string> operands;
    for (ValueId input : node.inputs) operands.push_back(reference(input));
    text += left(node.output) + op_info(node.attrs).name + "(" + join(operands) + ")" + print_attrs(node.attrs);
    if (!node.name.empty()) text += " node=" + quoted(node.name);
    if (!node.source.empty()) text += " source=" + quoted(node.source);
    text += "\n";
  }
  for (const Graph::Output& output : graph.outputs()) {
    text += "  output " + reference(output.value);
    if (output.name != graph.value(output.value).name) text += " as " + quoted(output.name);
    text += "\n";
  }
  return text + "}\n";
}

Expected<Graph> parse_graph(std::string_view text, std::string_view file, const std::function<std::optional<Blob>(std::string_view)>& lookup) {
  return GraphParser(text, file, lookup).parse();
}

// Hash of a text that names values by number, so that renaming inner values changes nothing; names of inputs, outputs and
// symbols count, as they are the interface.
std::string graph_hash(const Graph& graph) {
  std::map<ValueId, size_t> numbers;
  std::string text = join(graph.symbols) + "\n";
  auto type = [&](ValueId id) { return to_string(graph.value(id).type); };
  auto number = [&](ValueId id) -> std::string {
    if (!id.valid()) return "_";
    auto [it, fresh] = numbers.try_emplace(id, numbers.size());
    if (fresh && graph.is_constant(id)) text += std::to_string(it->second) + " const " + type(id) + " " + blob_hash(*graph.value(id).constant) + "\n";
    return std::to_string(it->second);
  };
  for (ValueId id : graph.inputs()) text += number(id) + " input " + quoted(graph.value(id).name) + " " + type(id) + "\n";
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    std::string line = op_info(node.attrs).name;
    for (ValueId input : node.inputs) line += " " + number(input);
    line += print_attrs(node.attrs) + " -> " + number(node.output) + " " + type(node.output) + "\n";
    text += line;
  }
  for (const Graph::Output& output : graph.outputs()) {
    std::string line = "output " + quoted(output.name) + " " + number(output.value) + "\n";
    text += line;
  }
  return sha256_hex(text);
}

}  // namespace tw
