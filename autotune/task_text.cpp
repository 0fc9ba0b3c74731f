#include "autotune/task_text.h"

#include <llvm/Support/Base64.h>
#include <llvm/Support/Compression.h>

#include <algorithm>
#include <map>
#include <ranges>
#include <set>

#include "ir/graph/queries.h"
#include "passes/choose/choose_algorithms.h"
#include "support/lexer.h"

namespace tw {
namespace {

constexpr size_t kMostValues = 4;
// Largest constant in a text. Kernels that are measured have far fewer bytes.
constexpr int64_t kMostConstantBytes = int64_t{1} << 31;
constexpr size_t kMostSmallBytes = 64 << 10, kMostKeptBytes = 4 << 20;

Blob own(std::vector<std::byte> bytes) {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return {owner, *owner};
}

// Contents that depend on the type only: no two neighbours are equal, and floats lie in [-1, 1).
Tensor made_up(DType dtype, const std::vector<int64_t>& shape) {
  Tensor t = Tensor::zeros(dtype, shape);
  const auto mixed = [](int64_t i) { return (static_cast<uint64_t>(i) + 1) * 0x9e3779b97f4a7c15; };
  const auto real = [&](int64_t i) { return static_cast<double>(mixed(i) >> 40) / (1 << 23) - 1; };
  const int64_t size = t.size();
  if (dtype == DType::f32)
    for (auto all = t.as<float>(); int64_t i : std::views::iota(int64_t{0}, size))
      all[static_cast<size_t>(i)] = static_cast<float>(real(i));
  else
    for (int64_t i = 0; i < size; ++i) {
      if (is_float(dtype)) t.set(i, real(i));
      else t.set_int(i, static_cast<int64_t>(mixed(i) >> 57) - 64);
    }
  return t;
}

bool few_values(const Tensor& t) {
  std::set<double> values;
  const int64_t size = t.size();
  for (int64_t i = 0; i < size && values.size() <= kMostValues; ++i) values.insert(t.at(i));
  return values.size() <= kMostValues;
}

// `integers` is set for a group that computes in integers, whose kernels may depend on its scales.
bool is_kept(const Tensor& t, bool integers) {
  return few_values(t) || ((integers || !is_float(t.dtype)) && t.bytes.size() <= kMostSmallBytes);
}

// Copies the group's nodes into a graph of their own.
class Extraction {
 public:
  Extraction(const Graph& from, const Group& group)
      : from_(from),
        group_(group),
        integers_(is_int(from.value(from.node(group.anchor).output).type.dtype)) {}

  Expected<std::string> run() {
    out_.name = "task";
    out_.limits = from_.limits;
    size_t anchor = 0;
    for (size_t i = 0; i < group_.nodes.size(); ++i) {
      TW_TRY(add(from_.node(group_.nodes[i])));
      if (group_.nodes[i] == group_.anchor) anchor = i;
    }
    const Node& last = from_.node(group_.nodes.back());
    for (const ValueId output : last.outputs()) out_.add_output(known_.at(output), "");
    return "task anchor=" + std::to_string(anchor) +
           " weights_between=" + std::to_string(weights_between(from_, group_)) + "\n" + bytes_ +
           print(out_);
  }

 private:
  std::string fresh(const char* prefix) { return prefix + std::to_string(known_.size()); }

  Error add(const Node& node) {
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) {
      if (!input.valid()) {
        inputs.push_back(input);
        continue;
      }
      if (!known_.contains(input)) {
        TW_ASSIGN(const ValueId made, outside(input));
        known_.emplace(input, made);
      }
      inputs.push_back(known_.at(input));
    }
    std::vector<std::string> names;
    for (size_t i = 0; i < node.outputs().size(); ++i)
      names.push_back("v" + std::to_string(known_.size() + i));
    TW_ASSIGN(const NodeId made, out_.add_node(node.attrs, inputs, names));
    const std::vector<ValueId> before = node.outputs(), now = out_.node(made).outputs();
    for (size_t i = 0; i < before.size(); ++i) {
      out_.value(now[i]).type.layout = from_.value(before[i]).type.layout;
      known_.emplace(before[i], now[i]);
    }
    return Error::success();
  }

  Expected<ValueId> outside(ValueId id) {
    const Value& value = from_.value(id);
    if (!value.constant) {
      if (std::ranges::any_of(value.type.shape, is_data_dependent))
        return make_error(DiagCode::unsupported,
                          "'{0}' has sizes that are read from data: its task cannot stand alone",
                          value.name);
      return out_.add_input(fresh("x"), value.type);
    }
    Tensor tensor = from_.constant_tensor(id);
    if (!is_kept(tensor, integers_)) tensor = made_up(tensor.dtype, tensor.shape);
    else if (tensor.size() > kMostInline) keep(tensor);
    if (bytes_.size() > kMostKeptBytes)
      return make_error(DiagCode::unsupported,
                        "the constants that its kernel depends on are more than {0} bytes",
                        kMostKeptBytes);
    return out_.add_constant(fresh("c"), tensor);
  }

  void keep(const Tensor& tensor) {
    const Blob blob{nullptr, tensor.bytes};
    const std::string hash = blob_hash(blob);
    if (!kept_.insert(hash).second) return;
    llvm::SmallVector<uint8_t, 0> packed;
    llvm::compression::zlib::compress(
        {reinterpret_cast<const uint8_t*>(tensor.bytes.data()), tensor.bytes.size()}, packed);
    bytes_ += "bytes " + tw::quoted(hash) + " " + tw::quoted(llvm::encodeBase64(packed)) + "\n";
  }

  static constexpr int64_t kMostInline = 16;  // largest constant that a graph's text writes out
  const Graph& from_;
  const Group& group_;
  const bool integers_;
  Graph out_;
  std::map<ValueId, ValueId> known_;
  std::set<std::string> kept_;
  std::string bytes_;
};

using KeptBytes = std::map<std::string, std::string, std::less<>>;  // contents are packed

ConstantLookup lookup_in(const KeptBytes& kept) {
  return [&kept](std::string_view hash, const TensorType& type) -> std::optional<Blob> {
    const auto shape = static_shape(type.shape);
    if (!shape) return std::nullopt;
    const int64_t asked = element_count(*shape) * dtype_bytes(type.dtype);
    if (asked > kMostConstantBytes) return std::nullopt;
    const auto wanted = static_cast<size_t>(asked);
    std::optional<Blob> blob;
    if (const auto found = kept.find(hash); found != kept.end()) {
      std::vector<std::byte> bytes(wanted);
      size_t size = wanted;
      Error error = llvm::compression::zlib::decompress(
          {reinterpret_cast<const uint8_t*>(found->second.data()), found->second.size()},
          reinterpret_cast<uint8_t*>(bytes.data()), size);
      const bool whole = !error && size == wanted;
      llvm::consumeError(std::move(error));
      if (!whole) return std::nullopt;
      blob = own(std::move(bytes));
    } else {
      blob = own(made_up(type.dtype, *shape).bytes);
    }
    return blob_hash(*blob) == hash ? blob : std::nullopt;
  };
}

Expected<int64_t> field(Lexer& lexer, const char* name) {
  TW_TRY(lexer.expect(name));
  TW_TRY(lexer.expect("="));
  return lexer.integer("a number");
}

}  // namespace

Expected<std::string> print_task(const Graph& graph, const Group& group) {
  return Extraction(graph, group).run();
}

std::string ParsedTask::key() const { return task_key(graph, group, weights_between); }

Expected<ParsedTask> parse_task(std::string_view text, std::string_view file) {
  // The lexer reads all of its text at once, so it gets the text before the graph only.
  const size_t begin = std::min(text.find("\ngraph"), text.size());
  Lexer lexer(text.substr(0, begin), file);
  ParsedTask out;
  TW_TRY(lexer.expect("task"));
  TW_ASSIGN(const int64_t anchor, field(lexer, "anchor"));
  TW_ASSIGN(const int64_t between, field(lexer, "weights_between"));
  KeptBytes kept;
  while (!lexer.at_end()) {
    TW_TRY(lexer.expect("bytes"));
    TW_ASSIGN(const std::string hash, lexer.string("a content hash"));
    const Token token = lexer.peek();
    TW_ASSIGN(const std::string packed, lexer.string("bytes in base 64"));
    std::vector<char> bytes;
    if (Error error = llvm::decodeBase64(packed, bytes)) {
      llvm::consumeError(std::move(error));
      return lexer.error_at(token, "these bytes are not in base 64");
    }
    kept.emplace(hash, std::string(bytes.begin(), bytes.end()));
  }
  TW_ASSIGN(out.graph, parse_graph(text.substr(begin), file, lookup_in(kept)));
  out.group.nodes = out.graph.order();
  if (anchor < 0 || anchor >= static_cast<int64_t>(out.group.nodes.size()) || between < 0)
    return lexer.error_here("the task has no node of the anchor's number");
  out.group.anchor = out.group.nodes[static_cast<size_t>(anchor)];
  out.weights_between = static_cast<uint64_t>(between);
  return out;
}

Expected<Task> lower_task(const ParsedTask& parsed, const Target& target, Algorithm algorithm) {
  Task task{parsed.key(), task_name(parsed.graph, parsed.group), 1, 0, parsed.weights_between, {}};
  TW_ASSIGN(LoweredGroup direct, lower_group(parsed.graph, parsed.group, target));
  task.flops = flops_of(direct.kernel);
  if (algorithm == Algorithm::direct) {
    task.variants.push_back({algorithm, std::move(direct)});
    return task;
  }
  const std::vector<Algorithm> able = applicable_algorithms(parsed.graph, parsed.group, target);
  if (std::ranges::find(able, algorithm) == able.end())
    return make_error(DiagCode::unsupported, "{0} does not apply to '{1}'",
                      algorithm_name(algorithm), task.name);
  Group group = parsed.group;
  group.algorithm = algorithm;
  TW_ASSIGN(LoweredGroup lowered, lower_group(parsed.graph, group, target));
  task.variants.push_back({algorithm, std::move(lowered)});
  return task;
}

}  // namespace tw
