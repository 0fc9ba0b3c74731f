#include "frontend/onnx/node_import.h"

#include <algorithm>

#include "ir/graph/externs.h"
#include "ir/graph/indices.h"

namespace tw::onnx_import {
namespace {

const TensorType& no_type() {
  static const TensorType type;
  return type;
}

const char* kind_name(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::integer: return "an integer";
    case AttributeKind::real: return "a float";
    case AttributeKind::text: return "a string";
    case AttributeKind::tensor: return "a tensor";
    case AttributeKind::integers: return "a list of integers";
    case AttributeKind::reals: return "a list of floats";
    case AttributeKind::texts: return "a list of strings";
    case AttributeKind::graph: return "a graph";
    case AttributeKind::other: return "something else";
  }
  TW_UNREACHABLE("bad kind");
}

}  // namespace

std::string bind_advice(const std::set<std::string>& symbols, const SymbolNames& names) {
  if (symbols.empty()) return "";
  std::string text = symbols.size() == 1 ? "bind the free dimension:" : "bind the free dimensions:";
  for (const std::string& symbol : symbols) text += " " + dim_flag(symbol_name(names, symbol));
  return text;
}

NodeImport::NodeImport(Builder& builder, Bodies& bodies, const OnnxNode& n, std::vector<Val> inputs,
                       std::vector<bool> wanted)
    : node(n),
      builder_(builder),
      bodies_(bodies),
      inputs_(std::move(inputs)),
      outputs_(n.outputs.size()),
      wanted_(std::move(wanted)) {}

Val NodeImport::in(size_t i) {
  if (has(i)) return inputs_[i];
  invalid(llvm::formatv("input {0} is missing", i).str());
  return {};
}

const OnnxAttribute* NodeImport::attribute(const char* name, AttributeKind kind) {
  const auto found = node.attributes.find(name);
  if (found == node.attributes.end()) return nullptr;
  if (found->second.kind == kind) return &found->second;
  invalid(llvm::formatv("attribute {0} is {1}, not {2}", name, kind_name(found->second.kind),
                        kind_name(kind))
              .str());
  return nullptr;
}

int64_t NodeImport::integer(const char* name, int64_t missing) {
  const OnnxAttribute* a = attribute(name, AttributeKind::integer);
  return a ? a->integer : missing;
}

double NodeImport::real(const char* name, double missing) {
  const OnnxAttribute* a = attribute(name, AttributeKind::real);
  return a ? static_cast<double>(a->real) : missing;
}

std::string NodeImport::text(const char* name, const char* missing) {
  const OnnxAttribute* a = attribute(name, AttributeKind::text);
  return a ? a->text : missing;
}

std::optional<Ints> NodeImport::integers(const char* name) {
  const OnnxAttribute* a = attribute(name, AttributeKind::integers);
  return a ? std::optional<Ints>(a->integers) : std::nullopt;
}

std::optional<std::vector<float>> NodeImport::reals(const char* name) {
  const OnnxAttribute* a = attribute(name, AttributeKind::reals);
  return a ? std::optional<std::vector<float>>(a->reals) : std::nullopt;
}

std::optional<std::vector<std::string>> NodeImport::texts(const char* name) {
  const OnnxAttribute* a = attribute(name, AttributeKind::texts);
  return a ? std::optional<std::vector<std::string>>(a->texts) : std::nullopt;
}

const Ints& NodeImport::integer_list(const char* name) {
  static const Ints kNone;
  const OnnxAttribute* a = attribute(name, AttributeKind::integers);
  return a ? a->integers : kNone;
}

const std::vector<std::string>& NodeImport::text_list(const char* name) {
  static const std::vector<std::string> kNone;
  const OnnxAttribute* a = attribute(name, AttributeKind::texts);
  return a ? a->texts : kNone;
}

const OnnxTensor* NodeImport::tensor(const char* name) {
  const OnnxAttribute* a = attribute(name, AttributeKind::tensor);
  return a ? a->tensor.get() : nullptr;
}

const OnnxGraph* NodeImport::graph(const char* name) {
  const OnnxAttribute* a = attribute(name, AttributeKind::graph);
  if (!a) invalid(llvm::formatv("attribute {0} is missing", name).str());
  return a ? a->graph.get() : nullptr;
}

const std::vector<Val>& NodeImport::items(size_t i) {
  static const std::vector<Val> none;
  const Val v = in(i);
  if (is_list(v, ListKind::sequence)) return builder_.items(v);
  if (is_list(v, ListKind::growing))
    fail("what a sequence holds that the loop itself makes longer",
         "make the trip count and the condition constants");
  else if (is_list(v, ListKind::rows)) fail("a sequence whose length is computed from the data");
  else invalid(llvm::formatv("input {0} is not a sequence", i).str());
  return none;
}

std::optional<std::vector<Val>> NodeImport::inlined(const OnnxGraph& body,
                                                    const std::vector<Val>& inputs) {
  if (failed()) return std::nullopt;
  if (inputs.size() != body.inputs.size()) {
    invalid(llvm::formatv("a graph of {0} inputs is given {1}", body.inputs.size(), inputs.size())
                .str());
    return std::nullopt;
  }
  std::optional<std::vector<Val>> outputs = bodies_.inlined(body, inputs);
  if (!outputs) fail_reported();
  return outputs;
}

std::unique_ptr<RegionDraft> NodeImport::region(const OnnxGraph& body,
                                                const Bodies::Inputs& inputs) {
  // A problem in another body must not hide one in this body.
  if (problem_ && !problem_->reported) return nullptr;
  std::unique_ptr<RegionDraft> draft = bodies_.region(body, inputs);
  if (!draft) fail_reported();
  return draft;
}

std::unique_ptr<RegionDraft> NodeImport::branch(const OnnxGraph& body, std::string& misfit) {
  if (problem_ && !problem_->reported) return nullptr;  // as above
  std::unique_ptr<RegionDraft> draft = bodies_.branch(body, misfit);
  if (!draft && misfit.empty()) fail_reported();
  return draft;
}

NodeImport NodeImport::within(RegionDraft& draft) const {
  return NodeImport(draft.builder, bodies_, node, {}, {});
}

void NodeImport::take_problem(const NodeImport& inner) {
  if (!problem_) problem_ = inner.problem_;
}

std::vector<Val> NodeImport::emit_all(const OpAttrs& attrs, const std::vector<Val>& inputs) {
  if (failed()) return {};
  Expected<std::vector<Val>> result = builder_.emit_all(attrs, inputs, origin());
  if (result) return std::move(*result);
  refused(result.takeError(), attrs, inputs);
  return {};
}

const TensorType& NodeImport::type(Val v) const { return v.valid() ? builder_.type(v) : no_type(); }

Expr NodeImport::dim(Val v, int64_t axis) const {
  const Shape& s = shape(v);
  return axis >= 0 && axis < static_cast<int64_t>(s.size()) ? s[static_cast<size_t>(axis)]
                                                            : Expr(1);
}

int64_t NodeImport::need_static_dim(Val v, int64_t axis, const char* why) {
  if (const auto extent = static_dim(v, axis)) return *extent;
  fail_symbolic(
      llvm::formatv("{0} needs a static extent, axis {1} is {2}", why, axis, named(dim(v, axis)))
          .str(),
      {dim(v, axis)});
  return 1;
}

int64_t NodeImport::axis(int64_t given, int64_t rank) {
  const int64_t a = given < 0 ? given + rank : given;
  if (a >= 0 && a < rank) return a;
  invalid(llvm::formatv("axis {0} is out of range for rank {1}", given, rank).str());
  return 0;
}

Ints NodeImport::axes(const Ints& given, int64_t rank) {
  Ints out;
  for (int64_t a : given) out.push_back(axis(a, rank));
  std::sort(out.begin(), out.end());
  if (!failed() && std::adjacent_find(out.begin(), out.end()) != out.end())
    invalid("an axis is given twice");
  return out;
}

Origin NodeImport::origin() const {
  if (!node.name.empty()) return {node.name, node.op_type};
  const auto first = std::ranges::find_if(node.outputs, [](const auto& o) { return !o.empty(); });
  return {first == node.outputs.end() ? "" : *first, node.op_type};
}

void NodeImport::check_number(const std::string& what, int64_t number, int64_t least,
                              int64_t most) {
  if (number < least)
    invalid(llvm::formatv("{0} is {1}, at least {2} is needed", what, number, least).str());
  else if (number > most)
    fail(llvm::formatv("{0} is {1}, at most {2} is supported", what, number, most).str());
}

Val NodeImport::within(Val v, const Expr& least, const Expr& most, const std::string& what) {
  const Val wide = cast(v, DType::i64);
  if (failed()) return {};
  bool open = false;
  const auto look_at = [&](const Expr& number) {
    const Expr inside = simplified(logical_and(le(least, number), le(number, most)));
    if (is_const(inside, 0))
      invalid(llvm::formatv("{0} {1}, expected {2} to {3}", what, named(number), named(least),
                            named(most))
                  .str());
    open = open || !as_const(inside);
  };
  if (const auto elements = known(wide)) {
    for (const Expr& element : *elements) look_at(element);
  } else if (const auto tensor = constant(wide)) {  // too long for known()
    if (const auto found = extremes(type(wide), tensor->bytes))
      look_at(Expr(found->least)), look_at(Expr(found->most));
  } else {
    open = true;
  }
  return open ? emit(op::Within{{simplified(least), simplified(most)}, what}, {wide}) : wide;
}

Val NodeImport::only_where(Val v, Val holds, const std::string& what) {
  if (failed()) return {};
  if (const auto elements = known(holds);
      elements &&
      std::ranges::all_of(*elements, [](const Expr& e) { return as_const(e).has_value(); })) {
    if (std::ranges::any_of(*elements, [](const Expr& e) { return is_const(e, 0); })) invalid(what);
    return v;
  }
  return select(emit(op::Within{{}, what}, {holds}), v, scalar(0, v));
}

std::optional<std::vector<Expr>> NodeImport::known(Val v) {
  const std::vector<Expr>* elements = v.valid() ? builder_.elements(v) : nullptr;
  return elements ? std::optional<std::vector<Expr>>(*elements) : std::nullopt;
}

std::optional<int64_t> NodeImport::length(Val v, const char* what) {
  const auto count = v.valid() ? as_const(element_count(shape(v))) : std::nullopt;
  if (!v.valid()) return std::nullopt;
  if (!is_int(dtype(v)) || rank(v) > 1)
    invalid(
        llvm::formatv("{0} is {1}, expected a list of integers", what, to_string(type(v))).str());
  else if (!count)
    fail(
        llvm::formatv("{0} has an unknown number of entries: {1}", what, to_string(type(v))).str());
  else if (*count > kKnownElements)
    fail(llvm::formatv("{0} has {1} entries, at most {2} are supported", what, *count,
                       kKnownElements)
             .str());
  return failed() ? std::nullopt : count;
}

Expr NodeImport::symbol_of(Val v, int64_t element, const Expr& bound) {
  return failed() || !v.valid() ? Expr(1) : builder_.element(v, element, bound, origin());
}

Val NodeImport::dim_values(std::vector<Expr> dims) {
  const auto count = static_cast<int64_t>(dims.size());
  return builder_.known(std::move(dims), DType::i64, {count});
}

Val NodeImport::element_value(Val v, int64_t element) {
  if (failed() || !v.valid()) return {};
  if (const auto known = builder_.known_element(v, element)) return dim_value(*known);
  return cast(reshape(rank(v) == 0 ? v : slice(v, 0, element, 1), {}), DType::i64);
}

std::vector<Expr> NodeImport::dims(Val v, const char* what) {
  if (!v.valid()) return {};
  if (auto elements = known(v)) return *elements;
  std::vector<Expr> list;
  const int64_t count = length(v, what).value_or(0);
  for (int64_t i = 0; i < count; ++i) list.push_back(symbol_of(v, i));
  return list;
}

Ints NodeImport::constants(Val v, const char* what) {
  Ints out;
  const auto elements = known(v);
  if (!elements && v.valid()) {
    const std::string bind = bind_advice(builder_.symbols_behind(v), builder_.symbol_names());
    fail(llvm::formatv("{0} computed from the data", what).str(),
         bind.empty() ? "make it a constant" : "make it a constant, or " + bind);
  }
  for (const Expr& e : elements.value_or(std::vector<Expr>())) {
    const std::optional<int64_t> value = as_const(e);
    if (!value)
      fail_symbolic(llvm::formatv("{0} must be a constant, it is {1}", what, named(e)).str(), {e});
    out.push_back(value.value_or(0));
  }
  return out;
}

Val NodeImport::emit(const OpAttrs& attrs, std::vector<Val> inputs) {
  if (failed()) return {};
  const OpInfo& info = op_info(attrs);
  TW_CHECK(static_cast<int>(inputs.size()) >= info.min_inputs, "{0} emitted with {1} inputs",
           info.name, inputs.size());
  for (size_t i = 0; i < static_cast<size_t>(info.min_inputs); ++i)
    TW_CHECK(inputs[i].valid(), "{0} of node {1}: input {2} is not there", info.name, node.name, i);
  Expected<Val> result = builder_.emit(attrs, inputs, origin());
  if (result) return *result;
  refused(result.takeError(), attrs, inputs);
  return {};
}

std::vector<Val> NodeImport::emit_extern(ExternFunction function, Ints ints,
                                         std::vector<double> reals, const std::vector<Val>& inputs,
                                         Shape dims) {
  const std::vector<Val> none(static_cast<size_t>(extern_info(function).outputs));
  if (failed()) return none;
  const OpAttrs attrs = op::Extern{function, std::move(ints), std::move(reals), std::move(dims)};
  Expected<std::vector<Val>> result = builder_.emit_all(attrs, inputs, origin());
  if (result) return std::move(*result);
  refused(result.takeError(), attrs, inputs);
  return none;
}

void NodeImport::refused(Error error, const OpAttrs& attrs, const std::vector<Val>& inputs) {
  const std::vector<Diag> diags = take_diags(std::move(error));
  problem_ = Problem{diags[0].code, with_names(diags[0].message, builder_.symbol_names()),
                     bind_advice(builder_.symbols_to_bind(attrs, inputs), builder_.symbol_names()),
                     false};
}

Val NodeImport::with_extent(Val v, int64_t axis, const Expr& to) {
  if (failed() || !v.valid()) return {};
  Expected<Val> made = builder_.with_extent(v, static_cast<size_t>(axis), to, origin());
  if (made) return *made;
  refused(made.takeError(), op::Expand{{to}, true}, {v});
  return {};
}

Val NodeImport::cast(Val a, DType to) {
  return dtype(a) == to && a.valid() ? a : emit(op::Cast{to, false}, {a});
}

namespace {
bool equal_shapes(const Shape& a, const Shape& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(),
                    [](const Expr& x, const Expr& y) { return tw::equal(x, y); });
}
}  // namespace

Val NodeImport::reshape(Val a, Shape to) {
  for (Expr& e : to) e = simplified(e);
  return a.valid() && equal_shapes(shape(a), to) ? a : emit(op::Reshape{std::move(to)}, {a});
}

Val NodeImport::expand(Val a, Shape to) {
  for (Expr& e : to) e = simplified(e);
  return a.valid() && equal_shapes(shape(a), to) ? a : emit(op::Expand{std::move(to)}, {a});
}

Val NodeImport::transpose(Val a, Ints perm) {
  bool identity = true;
  for (size_t i = 0; i < perm.size(); ++i)
    identity = identity && perm[i] == static_cast<int64_t>(i);
  return identity ? a : emit(op::Transpose{std::move(perm)}, {a});
}

Val NodeImport::reduce(ReduceKind kind, Val a, Ints axes, bool keep) {
  return axes.empty() ? a : emit(op::Reduce{kind, std::move(axes), keep}, {a});
}

Val NodeImport::slice(Val a, int64_t axis, const Expr& start, const Expr& size) {
  if (failed()) return {};
  op::Slice s;
  for (int64_t i = 0; i < rank(a); ++i) {
    s.starts.push_back(i == axis ? simplified(start) : Expr(0));
    s.sizes.push_back(i == axis ? simplified(size) : dim(a, i));
    s.steps.push_back(1);
  }
  return emit(std::move(s), {a});
}

Val NodeImport::constant_tensor(const OnnxTensor& tensor) {
  const std::optional<DType> dtype = tensor.dtype();
  if (!dtype) {
    fail("dtype " + element_type_name(tensor.element_type),
         "convert the model to float32 or an integer type");
    return {};
  }
  return builder_.add_constant(
      tensor.name, {*dtype, Shape(tensor.dims.begin(), tensor.dims.end()), {}}, tensor.data);
}

void NodeImport::set(size_t i, Val v) {
  if (failed() || !v.valid()) return;
  TW_CHECK(i < outputs_.size() || i > 0, "operator {0} has no output", node.op_type);
  if (i < outputs_.size()) outputs_[i] = v;
}

void NodeImport::fail(std::string text, std::string advice) {
  if (!problem_)
    problem_ = Problem{DiagCode::unsupported, std::move(text), std::move(advice), false};
}

void NodeImport::invalid(std::string text) {
  if (!problem_)
    problem_ = Problem{DiagCode::invalid_model, std::move(text),
                       "the model breaks the ONNX standard: export it again", false};
}

void NodeImport::fail_reported() {
  if (!problem_) problem_ = Problem{DiagCode::unsupported, "", "", true};
}

void NodeImport::fail_symbolic(std::string text, const std::vector<Expr>& because) {
  fail(std::move(text), bind_advice(builder_.symbols_in(because), builder_.symbol_names()));
}

}  // namespace tw::onnx_import
