// Importers of operators on strings.
#include "frontend/onnx/ops/strings/strings.h"

#include <algorithm>
#include <map>

#include "frontend/onnx/ops/importers.h"
#include "frontend/onnx/ops/strings/regex.h"
#include "ir/graph/externs.h"
#include "ir/graph/strings.h"
#include "ir/graph/unequal_dims.h"

namespace tw::onnx_import {
namespace {

bool is_string(NodeImport& n, Val v, size_t input) {
  if (n.failed()) return false;
  if (n.dtype(v) == DType::string) return true;
  n.invalid(
      llvm::formatv("input {0} is {1}, expected string", input, dtype_name(n.dtype(v))).str());
  return false;
}

Val first(const std::vector<Val>& made) { return made.empty() ? Val{} : made[0]; }

Val flat(NodeImport& n, Val x) { return n.reshape(x, {element_count(n.shape(x))}); }

Val integers(NodeImport& n, const std::vector<int64_t>& values) {
  Tensor tensor = Tensor::zeros(DType::i64, {std::ssize(values)});
  std::ranges::copy(values, tensor.as<int64_t>().begin());
  return n.builder().add_constant(tensor);
}

std::string no_program(Error error) {
  return "a pattern that has no program here: " + take_diags(std::move(error))[0].message;
}
constexpr const char* kRegexAdvice =
    "write it without: RE2's syntax but for Unicode classes and flags other than i, s";

}  // namespace

Val string_constant(NodeImport& n, const std::vector<std::string>& texts, Shape shape) {
  std::optional<std::string> packed = packed_strings(texts);
  if (!packed) {
    n.fail("a string with a zero byte", "zero bytes end strings here: leave them out");
    return {};
  }
  const auto owner = std::make_shared<const std::string>(std::move(*packed));
  return n.builder().add_constant(
      "", {DType::string, std::move(shape), {}},
      {owner, {reinterpret_cast<const std::byte*>(owner->data()), owner->size()}});
}

Val string_places(NodeImport& n, Val x, const std::vector<std::string>& texts) {
  std::map<std::string, int64_t> places;
  for (size_t i = 0; i < texts.size(); ++i) places[texts[i]] = static_cast<int64_t>(i);
  std::vector<std::string> sorted;
  std::vector<int64_t> of_sorted;
  for (const auto& [text, place] : places) sorted.push_back(text), of_sorted.push_back(place);
  of_sorted.push_back(-1);
  const Val keys = string_constant(n, sorted, {Expr(std::ssize(sorted))});
  if (n.failed()) return {};
  const Val found = first(n.emit_extern(ExternFunction::string_find, {}, {}, {x, keys}));
  if (n.failed()) return {};
  // Index -1 reads the last entry
  return n.emit(op::Gather{0}, {integers(n, of_sorted), found});
}

std::pair<Val, Val> string_operands(NodeImport& n) {
  const Val a = n.in(0), b = n.in(1);
  if (!is_string(n, a, 0) || !is_string(n, b, 1)) return {};
  while (true) {
    Expected<Shape> shape = broadcast_shapes(n.shape(a), n.shape(b));
    if (shape) return {n.expand(a, *shape), n.expand(b, *shape)};
    Error error = shape.takeError();
    const auto unequal = extents_to_compare(error);
    const std::string text = take_diags(std::move(error))[0].message;
    if (unequal && n.unify(unequal->first, unequal->second)) continue;
    if (unequal) n.fail(text, "give the extents one name, or bind them");
    else n.invalid(text);
    return {};
  }
}

void import_string_equal(NodeImport& n) {
  const auto [a, b] = string_operands(n);
  if (!n.failed()) n.set(first(n.emit_extern(ExternFunction::string_equal, {}, {}, {a, b})));
}

void import_string_concat(NodeImport& n) {
  const auto [a, b] = string_operands(n);
  if (!n.failed()) n.set(first(n.emit_extern(ExternFunction::string_concat, {}, {}, {a, b})));
}

// Normalizes the words of a vector, or of the only row of a matrix.
void import_string_normalizer(NodeImport& n) {
  const Val x = n.in(0);
  if (!is_string(n, x, 0)) return;
  const std::string action = n.text("case_change_action", "NONE");
  const auto stops = n.texts("stopwords").value_or(std::vector<std::string>());
  const char* const actions[] = {"NONE", "LOWER", "UPPER"};
  const auto found = std::ranges::find(actions, action);
  if (found == std::end(actions))
    return n.invalid("attribute case_change_action is '" + action + "'");
  if (const std::string locale = n.text("locale", ""); locale.starts_with("tr"))
    return n.fail("attribute locale '" + locale + "'", "only cases without a locale's own rules");
  const bool row = n.rank(x) == 2;
  if (n.rank(x) != 1 && !row) return n.invalid("input 0 is no vector and no row");
  if (row) n.unify(n.dim(x, 0), 1);
  const Val words = string_constant(n, stops, {Expr(std::ssize(stops))});
  if (n.failed()) return;
  const std::vector<Val> made = n.emit_extern(
      ExternFunction::string_normalize,
      {found - std::begin(actions), n.integer("is_case_sensitive", 0) != 0}, {},
      {flat(n, x), words});
  if (n.failed()) return;
  Val y = made[0];
  if (!stops.empty()) y = n.slice(y, 0, 0, n.symbol_of(made[1], 0, n.dim(y, 0)));
  n.set(row ? n.reshape(y, {1, n.dim(y, 0)}) : y);
}

void import_string_split(NodeImport& n) {
  const Val x = n.in(0);
  if (!is_string(n, x, 0)) return;
  const Val delimiter = string_constant(n, {n.text("delimiter", "")}, {1});
  const int64_t most = n.has_attribute("maxsplit") ? n.integer("maxsplit", 0) : -1;
  const std::vector<Val> parts = n.emit_extern(ExternFunction::string_parts, {most}, {},
                                               {x, delimiter});
  if (n.failed()) return;
  const Expr longest = n.symbol_of(parts[1], 0);
  n.set(0,
        first(n.emit_extern(ExternFunction::string_split, {most}, {}, {x, delimiter}, {longest})));
  n.set(1, parts[0]);
}

void import_regex_full_match(NodeImport& n) {
  const Val x = n.in(0);
  if (!is_string(n, x, 0)) return;
  Expected<std::vector<int32_t>> words = compile_regex(n.text("pattern", ""));
  if (!words) return n.fail(no_program(words.takeError()), kRegexAdvice);
  Tensor program = Tensor::zeros(DType::i32, {std::ssize(*words)});
  std::ranges::copy(*words, program.as<int32_t>().begin());
  n.set(first(
      n.emit_extern(ExternFunction::string_match, {}, {}, {x, n.builder().add_constant(program)})));
}

// Programs in one tensor: their number, the place where each begins, and the programs.
static Val compiled(NodeImport& n, const std::vector<std::string>& patterns) {
  std::vector<int32_t> all(patterns.size() + 1, static_cast<int32_t>(patterns.size()));
  for (size_t i = 0; i < patterns.size(); ++i) {
    Expected<std::vector<int32_t>> words = compile_regex(patterns[i]);
    if (!words) {
      n.fail(no_program(words.takeError()), kRegexAdvice);
      return {};
    }
    all[i + 1] = static_cast<int32_t>(all.size());
    all.insert(all.end(), words->begin(), words->end());
  }
  Tensor programs = Tensor::zeros(DType::i32, {std::ssize(all)});
  std::ranges::copy(all, programs.as<int32_t>().begin());
  return n.builder().add_constant(programs);
}

// Tokenizer of com.microsoft. Tokens lie between separators, which apply one after the other, or
// match tokenexp. If that matches any character, tokens are characters.
void import_tokenizer(NodeImport& n) {
  enum class Mode : uint8_t { between, found, characters };
  constexpr size_t kMostSeparators = 64;
  const Val x = n.in(0);
  if (!is_string(n, x, 0)) return;
  const int64_t least = n.integer("mincharnum", 0), mark = n.integer("mark", 0) != 0;
  const auto separators = n.texts("separators");
  const std::vector<std::string> patterns = separators.value_or(
      std::vector<std::string>{n.text("tokenexp", "")});
  if (n.rank(x) != 1 && n.rank(x) != 2) return n.invalid("input 0 is no vector and no matrix");
  if (least < 1) return n.invalid("attribute mincharnum is not positive");
  if (patterns.empty() || (!separators && patterns[0].empty()))
    return n.invalid("neither separators nor tokenexp");
  if (patterns.size() > kMostSeparators)
    return n.fail("more than 64 separators", "join them by '|' where none needs another's pieces");
  const bool characters = patterns.size() == 1 && patterns[0] == (separators ? "" : ".");
  if (characters && least > 1) return n.invalid("tokens of one character, and mincharnum above 1");
  const Mode mode = characters ? Mode::characters : separators ? Mode::between : Mode::found;
  const Val programs = compiled(n, patterns),
            pad = string_constant(n, {n.text("pad_value", "")}, {1});
  if (n.failed()) return;
  const Ints ints = {static_cast<int64_t>(mode), least, mark};
  const Val count = first(
      n.emit_extern(ExternFunction::string_token_count, ints, {}, {x, programs}));
  if (n.failed()) return;
  const Expr most = n.symbol_of(count, 0);
  n.set(first(n.emit_extern(ExternFunction::string_tokens, ints, {}, {x, programs, pad}, {most})));
}

// The n-grams are in pool_int64s or pool_strings, and ngram_counts says where those of each length
// begin. Strings become numbers: the place of the last equal string in the pool.
void import_tf_idf_vectorizer(NodeImport& n) {
  const Val given = n.in(0);
  if (n.failed()) return;
  const auto texts = n.texts("pool_strings").value_or(std::vector<std::string>());
  Ints pool = n.integers("pool_int64s").value_or(Ints());
  Val x = given;
  if (!texts.empty()) {
    std::map<std::string, int64_t> last;
    for (size_t i = 0; i < texts.size(); ++i) last[texts[i]] = static_cast<int64_t>(i);
    for (const std::string& text : texts) pool.push_back(last[text]);
    x = string_places(n, given, texts);
  }
  if (!n.failed()) count_ngrams(n, n.cast(x, DType::i64), pool);
}

}  // namespace tw::onnx_import
