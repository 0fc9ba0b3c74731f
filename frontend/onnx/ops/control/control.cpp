// Importers of If, Loop, Scan and SequenceMap: their inputs and attributes. frontend/onnx/loops.h
// has the ways to run iterations.
#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "frontend/onnx/loops.h"
#include "frontend/onnx/ops/importers.h"
#include "frontend/onnx/run_list.h"
#include "ir/graph/externs.h"

namespace tw::onnx_import {
namespace {

// From this trip count on, only the condition ends a loop that has one: exporters write the largest
// integer for "while".
constexpr int64_t kManyTrips = int64_t{1} << 40;

using ListKind = Builder::ListKind;

void set_all(NodeImport& n, const std::vector<Val>& values) {
  for (size_t i = 0; i < values.size(); ++i) n.set(i, values[i]);
}

// Checks that the body has the inputs and outputs that the node's own require.
bool fits(NodeImport& n, const OnnxGraph* body, size_t inputs, size_t outputs) {
  if (n.failed()) return false;
  if (body->inputs.size() != inputs)
    n.invalid(
        llvm::formatv("a body of {0} inputs, expected {1}", body->inputs.size(), inputs).str());
  if (body->outputs.size() != outputs)
    n.invalid(
        llvm::formatv("a body of {0} outputs, expected {1}", body->outputs.size(), outputs).str());
  return !n.failed();
}

// The structure of a value: a tensor, or a list of such values.
struct Form {
  std::optional<ListKind> kind{};  // nullopt: a tensor
  int64_t least_rank = 0;          // rows: rank of the smallest item
  std::vector<Form> items{};
  bool operator==(const Form&) const = default;
};

// Appends the tensors of a value to `tensors`.
Form flatten(NodeImport& n, Val v, std::vector<Val>& tensors) {
  Form form{n.builder().list_kind(v)};
  if (!form.kind) {
    tensors.push_back(v);
    return form;
  }
  std::vector<Val> items = n.builder().items(v);
  if (form.kind == ListKind::rows) {
    form.least_rank = run_list(n, v).least_rank;
    items.pop_back();
  }
  for (Val item : items) form.items.push_back(flatten(n, item, tensors));
  return form;
}

// The value of this form, made of the tensors from `next` on.
Val rebuilt(NodeImport& n, const Form& form, const std::vector<Val>& tensors, size_t& next) {
  if (!form.kind) return tensors[next++];
  std::vector<Val> items;
  for (const Form& item : form.items) items.push_back(rebuilt(n, item, tensors, next));
  return form.kind == ListKind::rows ? as_value(n, {items[0], items[1], form.least_rank})
                                     : n.builder().list(*form.kind, std::move(items));
}

// Handles outputs that have different sizes in two branches. Both branches give such an output
// flat, filled up to the larger size, and its sizes as a further output.
class Sizes {
 public:
  Sizes(NodeImport& n, RegionDraft& yes, RegionDraft& no) : n_(n), drafts_{&yes, &no} {}

  // Makes output i of both branches flat, and adds an output to each.
  void flatten(std::vector<Val>& from_yes, std::vector<Val>& from_no, size_t i) {
    const TensorType a = drafts_[0]->builder.type(from_yes[i]),
                     b = drafts_[1]->builder.type(from_no[i]);
    // One element gets the higher rank
    if (a.dtype == b.dtype && is_const(element_count(a.shape), 1) &&
        is_const(element_count(b.shape), 1)) {
      const bool raise = a.shape.size() < b.shape.size();
      Val& lower = raise ? from_yes[i] : from_no[i];
      lower = emit(raise ? 0 : 1, op::Reshape{raise ? b.shape : a.shape}, lower);
      return;
    }
    if (a.dtype != b.dtype || a.shape.size() != b.shape.size())
      return n_.fail(
          llvm::formatv("a condition that is computed from the data chooses between {0} and {1}",
                        to_string(a), to_string(b))
              .str(),
          "give both branches' outputs one type and rank");
    Output output{i, from_yes.size(), {}};
    for (size_t axis = 0; axis < a.shape.size(); ++axis)
      output.most.push_back(larger(a.shape[axis], b.shape[axis]));
    const Expr capacity = larger(element_count(a.shape), element_count(b.shape));
    if (n_.failed()) return;
    fill(0, from_yes, i, a.shape, capacity);
    fill(1, from_no, i, b.shape, capacity);
    outputs_.push_back(std::move(output));
  }

  // Gives the outputs of the node their sizes again.
  void restore(std::vector<Val>& made) {
    for (const Output& output : outputs_) {
      if (n_.failed()) return;
      Shape shape;
      for (size_t axis = 0; axis < output.most.size(); ++axis)
        shape.push_back(
            n_.symbol_of(made[output.sizes], static_cast<int64_t>(axis), output.most[axis]));
      made[output.at] = n_.reshape(n_.slice(made[output.at], 0, 0, element_count(shape)), shape);
    }
  }

 private:
  struct Output {
    size_t at, sizes;  // numbers of the outputs
    std::vector<Expr> most;
  };

  // The larger size, in symbols that both branches know.
  Expr larger(const Expr& in_yes, const Expr& in_no) {
    const Expr a = drafts_[0]->builder.most_outside(in_yes),
               b = drafts_[1]->builder.most_outside(in_no);
    if (a.defined() && b.defined()) return n_.simplified(max(a, b));
    n_.fail("data inside of a branch decide about the size of its output, which has no limit");
    return 0;
  }

  void fill(size_t branch, std::vector<Val>& from, size_t i, const Shape& shape,
            const Expr& capacity) {
    const Val flat = emit(branch, op::Reshape{{element_count(shape)}}, from[i]);
    const Expr rest = n_.simplified(capacity - element_count(shape));
    from[i] = is_const(rest, 0) ? flat
                                : emit(branch, op::Pad{PadMode::constant, {Expr(0)}, {rest}}, flat);
    from.push_back(drafts_[branch]->builder.known(shape, DType::i64,
                                                  {Expr(static_cast<int64_t>(shape.size()))}));
  }

  Val emit(size_t branch, OpAttrs attrs, Val v) {
    if (n_.failed()) return v;
    Expected<Val> made = drafts_[branch]->builder.emit(std::move(attrs), {v}, n_.origin());
    if (made) return *made;
    n_.fail(take_diags(made.takeError())[0].message);
    return v;
  }

  NodeImport& n_;
  RegionDraft* drafts_[2];
  std::vector<Output> outputs_;
};

// Brings an output of two branches to one form. Each value is made in its own branch. A list then
// becomes one whose length, or presence, only the run knows.
class OneForm {
 public:
  OneForm(NodeImport& yes, NodeImport& no) : sides_{&yes, &no} {}

  std::array<Val, 2> of(std::array<Val, 2> v) {
    const auto is = [&](size_t side, ListKind kind) {
      return sides_[side]->is_list(v[side], kind);
    };
    const auto either = [&](ListKind kind) { return is(0, kind) || is(1, kind); };
    if (either(ListKind::growing))
      sides_[0]->fail("a sequence that a loop makes longer, in a branch that the data choose");
    if (sides_[0]->failed() || sides_[1]->failed()) return v;
    if (either(ListKind::optional) || either(ListKind::maybe)) return optional(v);
    const bool list[] = {is(0, ListKind::sequence) || is(0, ListKind::rows),
                         is(1, ListKind::sequence) || is(1, ListKind::rows)};
    if (!list[0] && !list[1]) return v;
    if (!list[0] || !list[1])
      sides_[0]->invalid("a sequence in one branch and a tensor in the other");
    else if (either(ListKind::rows) || items(v, 0).size() != items(v, 1).size()) return rows(v);
    else return items_alike(v, ListKind::sequence);
    return v;
  }

 private:
  const std::vector<Val>& items(const std::array<Val, 2>& v, size_t side) const {
    return sides_[side]->builder().items(v[side]);
  }

  // Handles lists that hold equally many items.
  std::array<Val, 2> items_alike(std::array<Val, 2> v, ListKind kind) {
    std::vector<Val> lists[2];
    for (size_t i = 0; i < items(v, 0).size(); ++i) {
      const auto made = of({items(v, 0)[i], items(v, 1)[i]});
      lists[0].push_back(made[0]);
      lists[1].push_back(made[1]);
    }
    return {sides_[0]->builder().list(kind, lists[0]), sides_[1]->builder().list(kind, lists[1])};
  }

  std::array<Val, 2> rows(const std::array<Val, 2>& v) {
    RunList lists[2];
    const auto empty = [&](size_t side) {
      return sides_[side]->is_list(v[side], ListKind::sequence) && items(v, side).empty();
    };
    for (size_t side : {0, 1})
      if (!empty(side)) lists[side] = run_list(*sides_[side], v[side]);
    for (size_t side : {0, 1}) {
      NodeImport& other = *sides_[1 - side];
      if (!empty(side) || other.failed()) continue;
      const Shape& shape = other.shape(lists[1 - side].rows);
      lists[side] = no_items(
          *sides_[side],
          {other.dtype(lists[1 - side].rows), Shape(shape.begin() + 1, shape.end()), {}});
      lists[side].least_rank = lists[1 - side].least_rank;
    }
    const int64_t least = std::min(lists[0].least_rank, lists[1].least_rank);
    std::array<Val, 2> made = v;
    for (size_t side : {0, 1}) {
      lists[side].least_rank = least;
      made[side] = as_value(*sides_[side], lists[side]);
    }
    return made;
  }

  // A placeholder for an absent value, as small as its type allows.
  Val blank(size_t side, Val like) {
    NodeImport &own = *sides_[side], &other = *sides_[1 - side];
    const auto kind = other.builder().list_kind(like);
    if (!kind)
      return own.builder().add_constant(
          Tensor::zeros(other.dtype(like), std::vector<int64_t>(other.shape(like).size(), 0)));
    if (*kind == ListKind::sequence || *kind == ListKind::rows)
      return own.builder().list(ListKind::sequence, {});
    return own.builder().list(ListKind::optional, {});
  }

  std::array<Val, 2> optional(const std::array<Val, 2>& v) {
    const auto kind = [&](size_t side) { return sides_[side]->builder().list_kind(v[side]); };
    if (kind(0) == ListKind::optional && kind(1) == ListKind::optional &&
        items(v, 0).size() == items(v, 1).size())
      return items_alike(v, ListKind::optional);
    Val there[2];
    std::array<Val, 2> held{};
    for (size_t side : {0, 1}) {
      const bool maybe = kind(side) == ListKind::maybe,
                 plain = kind(side) != ListKind::optional && !maybe,
                 some = plain || !items(v, side).empty();
      there[side] = maybe ? items(v, side)[0]
                          : sides_[side]->builder().known({Expr(some ? 1 : 0)}, DType::boolean, {});
      if (some) held[side] = plain ? v[side] : items(v, side).back();
    }
    for (size_t side : {0, 1})
      if (!held[side].valid()) held[side] = blank(side, held[1 - side]);
    held = of(held);
    return {sides_[0]->builder().list(ListKind::maybe, {there[0], held[0]}),
            sides_[1]->builder().list(ListKind::maybe, {there[1], held[1]})};
  }

  NodeImport* sides_[2];
};

// A draft in place of a branch that does not fit the sizes. A function in it ends the run, so its
// outputs, which have the types of the other branch's, are never reached.
std::unique_ptr<RegionDraft> refusing(NodeImport& n, const RegionDraft& other,
                                      const std::string& text) {
  auto draft = std::make_unique<RegionDraft>();
  draft->builder.share_symbols(n.builder());
  NodeImport in = n.within(*draft);
  const Val one = in.emit_extern(ExternFunction::refuse, Ints(text.begin(), text.end()), {}, {})[0];
  for (const Val output : other.outputs) {
    if (other.builder.list_kind(output))
      in.fail("a list from one branch, and the other branch fits no run: " + text);
    if (in.failed()) break;
    TensorType type = other.builder.type(output);
    for (Expr& dim : type.shape)
      if (other.builder.is_made_here({dim})) dim = 1;  // no branch knows the other's data
    draft->outputs.push_back(in.expand(
        in.reshape(in.cast(one, type.dtype), Shape(type.shape.size(), Expr(1))), type.shape));
  }
  n.take_problem(in);
  return draft;
}

// Drafts both branches. If only one branch does not fit the sizes, that is no error of the model,
// as no run may take it.
std::array<std::unique_ptr<RegionDraft>, 2> both_branches(NodeImport& n,
                                                          const OnnxGraph& then_branch,
                                                          const OnnxGraph& else_branch) {
  std::string misfits[2];
  std::array<std::unique_ptr<RegionDraft>, 2> drafts = {n.branch(then_branch, misfits[0]),
                                                        n.branch(else_branch, misfits[1])};
  if (n.failed() || (drafts[0] && drafts[1])) return drafts;
  if (!drafts[0] && !drafts[1]) {
    n.fail("neither branch fits the sizes of its inputs: then_branch: " + misfits[0] +
               "; else_branch: " + misfits[1],
           "bind other sizes, or leave them free");
    return drafts;
  }
  const size_t side = drafts[0] ? 1 : 0;
  std::string text = "If '" + n.node.name + "': " + (side ? "else_branch" : "then_branch") +
                     " does not fit these sizes: " + misfits[side];
  std::erase_if(text, [](char c) { return c < 1; });  // plain ASCII
  n.warn(text + "; a run that takes it ends with an error");
  drafts[side] = refusing(n, *drafts[1 - side], text);
  return drafts;
}

// Both branches, with their outputs in the same forms.
struct Branches {
  std::unique_ptr<RegionDraft> yes, no;
  std::vector<Form> forms;             // forms of the node's outputs
  std::vector<Val> from_yes, from_no;  // tensors of all outputs
};

std::optional<Branches> branches_of(NodeImport& n, const OnnxGraph& then_branch,
                                    const OnnxGraph& else_branch) {
  auto [yes, no] = both_branches(n, then_branch, else_branch);
  if (n.failed() || !yes || !no) return std::nullopt;
  Branches out{std::move(yes), std::move(no), {}, {}, {}};
  NodeImport in_yes = n.within(*out.yes), in_no = n.within(*out.no);
  for (size_t i = 0; i < out.yes->outputs.size(); ++i) {
    const auto [a, b] = OneForm(in_yes, in_no).of({out.yes->outputs[i], out.no->outputs[i]});
    n.take_problem(in_yes);
    n.take_problem(in_no);
    if (n.failed()) return std::nullopt;
    out.forms.push_back(flatten(in_yes, a, out.from_yes));
    if (flatten(in_no, b, out.from_no) != out.forms[i]) {
      n.fail(llvm::formatv("output {0} holds lists of different kinds in the branches of a "
                           "condition that is computed from the data",
                           i)
                 .str());
      return std::nullopt;
    }
  }
  return out;
}

// Makes the node, which gives the values of the branch that it takes.
std::vector<Val> chosen(NodeImport& n, Branches& branches, const std::vector<Val>& from_yes,
                        const std::vector<Val>& from_no) {
  std::vector<Val> inputs = {n.reshape(n.in(0), {})};
  for (const auto* list : {&branches.yes->captured, &branches.no->captured})
    inputs.insert(inputs.end(), list->begin(), list->end());
  const op::If attrs{finished(n, *branches.yes, from_yes, "then"),
                     finished(n, *branches.no, from_no, "else")};
  return n.emit_all(attrs, inputs);
}

bool has_limit(const RegionDraft& draft, Val v) {
  const Shape& shape = draft.builder.type(v).shape;
  return draft.builder.most_outside(element_count(shape)).defined() &&
         std::ranges::all_of(
             shape, [&](const Expr& dim) { return draft.builder.most_outside(dim).defined(); });
}

// The sizes of outputs that a branch computes without a limit: a first node finds them. nullopt
// after a failure.
std::optional<std::map<size_t, Shape>> sizes_without_limit(NodeImport& n, Branches& branches) {
  std::vector<Val> in_yes, in_no;
  std::vector<size_t> which;
  NodeImport yes = n.within(*branches.yes), no = n.within(*branches.no);
  for (size_t i = 0; i < branches.from_yes.size(); ++i) {
    const Val a = branches.from_yes[i], b = branches.from_no[i];
    if (has_limit(*branches.yes, a) && has_limit(*branches.no, b)) continue;
    if (yes.dtype(a) != no.dtype(b) || yes.shape(a).size() != no.shape(b).size()) continue;
    which.push_back(i);
    in_yes.push_back(yes.dim_values(yes.shape(a)));
    in_no.push_back(no.dim_values(no.shape(b)));
  }
  n.take_problem(yes);
  n.take_problem(no);
  std::map<size_t, Shape> sizes;
  if (n.failed()) return std::nullopt;
  if (which.empty()) return sizes;
  const std::vector<Val> made = chosen(n, branches, in_yes, in_no);
  for (size_t i = 0; i < which.size() && !n.failed(); ++i)
    for (size_t axis = 0; axis < yes.shape(branches.from_yes[which[i]]).size(); ++axis)
      sizes[which[i]].push_back(n.symbol_of(made[i], static_cast<int64_t>(axis)));
  return n.failed() ? std::nullopt : std::optional(std::move(sizes));
}

// Gives the outputs these sizes, which the run checks.
void fit_sizes(NodeImport& n, RegionDraft& draft, std::vector<Val>& from,
               const std::map<size_t, Shape>& sizes) {
  NodeImport inner = n.within(draft);
  for (const auto& [i, shape] : sizes)
    for (size_t axis = 0; axis < shape.size() && !inner.failed(); ++axis)
      from[i] = inner.with_extent(from[i], static_cast<int64_t>(axis), shape[axis]);
  n.take_problem(inner);
}

void branched(NodeImport& n, const OnnxGraph& then_branch, const OnnxGraph& else_branch) {
  std::optional<Branches> branches = branches_of(n, then_branch, else_branch);
  if (!branches) return;
  const auto found = sizes_without_limit(n, *branches);
  if (!found) return;
  if (!found->empty()) {  // drafts the branches again, with the new symbols
    branches = branches_of(n, then_branch, else_branch);
    if (!branches) return;
    fit_sizes(n, *branches->yes, branches->from_yes, *found);
    fit_sizes(n, *branches->no, branches->from_no, *found);
    if (n.failed()) return;
  }
  auto& [yes, no, forms, from_yes, from_no] = *branches;
  Sizes sizes(n, *yes, *no);
  for (size_t i = 0, count = from_yes.size(); i < count; ++i)
    if (!equal(yes->builder.type(from_yes[i]), no->builder.type(from_no[i])) ||
        yes->builder.is_made_here(yes->builder.type(from_yes[i]).shape) ||
        no->builder.is_made_here(no->builder.type(from_no[i]).shape))
      sizes.flatten(from_yes, from_no, i);
  if (n.failed()) return;
  std::vector<Val> made = chosen(n, *branches, from_yes, from_no);
  sizes.restore(made);
  for (size_t i = 0, next = 0; i < forms.size() && !n.failed(); ++i)
    n.set(i, rebuilt(n, forms[i], made, next));
}

}  // namespace

void import_if(NodeImport& n) {
  const OnnxGraph *then_branch = n.graph("then_branch"), *else_branch = n.graph("else_branch");
  const Val condition = n.in(0);
  if (n.failed() || !fits(n, then_branch, 0, n.output_count()) ||
      !fits(n, else_branch, 0, n.output_count()))
    return;
  const std::optional<bool> taken = known_bool(n, condition);
  if (!taken) return branched(n, *then_branch, *else_branch);
  if (const auto outputs = n.inlined(*taken ? *then_branch : *else_branch, {}))
    set_all(n, *outputs);
}

void import_loop(NodeImport& n) {
  LoopSpec spec;
  spec.body = n.graph("body");
  spec.counts = true;
  spec.condition = n.maybe(1);
  for (size_t i = 2; i < n.input_count(); ++i) spec.carried.push_back(n.in(i));
  if (!fits(n, spec.body, spec.carried.size() + 2, n.output_count() + 1)) return;
  if (n.output_count() < spec.carried.size()) return n.invalid("fewer outputs than carried values");
  if (n.has(0)) {
    Val count = n.in(0);
    if (!n.known(count)) count = n.max(n.cast(count, DType::i64), n.scalar(0, DType::i64));
    const std::vector<Expr> trip = n.dims(count, "the trip count");
    if (!n.failed() && trip.size() != 1) n.invalid("the trip count is not a scalar");
    if (n.failed()) return;
    const int64_t most = spec.condition.valid() ? kManyTrips : std::numeric_limits<int64_t>::max();
    if (as_const(trip[0]).value_or(0) < most) spec.trip = n.simplified(max(trip[0], Expr(0)));
  }
  for (size_t i = spec.carried.size(); i < n.output_count(); ++i)
    spec.wanted.push_back(n.wanted(i));
  const std::optional<Results> results = import_loop(n, spec);
  if (!results) return;
  set_all(n, results->carried);
  for (size_t i = 0; i < results->stacked.size(); ++i)
    n.set(results->carried.size() + i, results->stacked[i]);
}

namespace {

// The attribute's entry for scan input or output i, of `count` ones.
int64_t listed(NodeImport& n, const char* name, size_t i, size_t count) {
  const std::optional<Ints> list = n.integers(name);
  if (!list) return 0;
  if (list->size() == count) return (*list)[i];
  n.invalid(llvm::formatv("attribute {0} has {1} entries, expected {2}", name, list->size(), count)
                .str());
  return 0;
}

Val reversed(NodeImport& n, Val v, bool whether) {
  if (n.failed() || !whether) return v;
  op::Slice slice;
  for (int64_t i = 0; i < n.rank(v); ++i) {
    slice.starts.push_back(i == 0 ? n.simplified(n.dim(v, 0) - Expr(1)) : Expr(0));
    slice.steps.push_back(i == 0 ? -1 : 1);
    slice.sizes.push_back(n.dim(v, i));
  }
  return n.emit(std::move(slice), {v});
}

Val moved(NodeImport& n, Val v, int64_t from, int64_t to) {
  Ints perm;
  for (int64_t i = 0; i < n.rank(v); ++i)
    if (i != from) perm.push_back(i);
  perm.insert(perm.begin() + to, from);
  return n.failed() ? Val{} : n.transpose(v, std::move(perm));
}

std::optional<Results> scan(NodeImport& n, const OnnxGraph* body, std::vector<Val> states,
                            const std::vector<Val>& inputs, const char* directions) {
  LoopSpec spec;
  spec.body = body;
  spec.carried = std::move(states);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (n.rank(inputs[i]) < 1) n.invalid(llvm::formatv("scan input {0} is a scalar", i).str());
    spec.sliced.push_back(reversed(n, inputs[i], listed(n, directions, i, inputs.size()) != 0));
    if (n.failed()) return std::nullopt;
    if (spec.trip) spec.sliced[i] = n.with_extent(spec.sliced[i], 0, *spec.trip);
    if (n.failed()) return std::nullopt;
    spec.trip = n.dim(spec.sliced[i], 0);
  }
  spec.wanted.assign(n.failed() ? 0 : spec.stacked_count(), true);
  return n.failed() ? std::nullopt : import_loop(n, spec);
}

// Version 8 has an axis of batches in front of all others, and an input of lengths.
void import_batched_scan(NodeImport& n, const OnnxGraph* body, size_t states) {
  if (n.has(0)) return n.fail("sequence lengths", "export at opset 9 or later");
  const int64_t batch = n.need_static_dim(n.in(1), 0, "a scan of version 8");
  std::vector<std::vector<Val>> outputs(n.output_count());
  for (int64_t b = 0; b < batch && !n.failed(); ++b) {
    std::vector<Val> own;
    for (size_t i = 1; i < n.input_count(); ++i) own.push_back(row(n, n.in(i), b));
    if (n.failed()) return;
    const auto middle = own.begin() + static_cast<std::ptrdiff_t>(states);
    const auto results = scan(n, body, {own.begin(), middle}, {middle, own.end()}, "directions");
    if (!results) return;
    for (size_t i = 0; i < outputs.size(); ++i)
      outputs[i].push_back(i < states ? results->carried[i] : results->stacked[i - states]);
  }
  if (batch == 0) return n.fail("a batch of 0");
  for (size_t i = 0; i < outputs.size() && !n.failed(); ++i) n.set(i, stack(n, outputs[i]));
}

}  // namespace

void import_scan(NodeImport& n) {
  const OnnxGraph* body = n.graph("body");
  const size_t lead = n.version() == 8 ? 1 : 0,
               all = n.input_count() - std::min(lead, n.input_count());
  const int64_t scanned = n.integer("num_scan_inputs", 0);
  if (!n.failed() && (scanned < 1 || static_cast<size_t>(scanned) > all))
    n.invalid(llvm::formatv("num_scan_inputs is {0} of {1} inputs", scanned, all).str());
  if (n.failed() || !fits(n, body, all, n.output_count())) return;
  const size_t states = all - static_cast<size_t>(scanned);
  if (n.output_count() < states) return n.invalid("fewer outputs than states");
  if (lead) return import_batched_scan(n, body, states);
  std::vector<Val> own, inputs;
  for (size_t i = 0; i < all; ++i) {
    if (i < states) {
      own.push_back(n.in(i));
      continue;
    }
    const int64_t axis = n.axis(listed(n, "scan_input_axes", i - states, all - states),
                                n.rank(n.in(i)));
    inputs.push_back(moved(n, n.in(i), axis, 0));
  }
  if (n.failed()) return;
  const auto results = scan(n, body, std::move(own), inputs, "scan_input_directions");
  if (!results) return;
  set_all(n, results->carried);
  const size_t stacked = results->stacked.size();
  for (size_t i = 0; i < stacked; ++i) {
    const Val v = reversed(n, results->stacked[i],
                           listed(n, "scan_output_directions", i, stacked) != 0);
    n.set(states + i, moved(n, v, 0, n.axis(listed(n, "scan_output_axes", i, stacked), n.rank(v))));
  }
}

void import_sequence_map(NodeImport& n) {
  const OnnxGraph* body = n.graph("body");
  const size_t count = n.items(0).size();
  if (!fits(n, body, n.input_count(), n.output_count())) return;
  std::vector<std::vector<Val>> outputs(n.output_count());
  for (size_t iteration = 0; iteration < count; ++iteration) {
    std::vector<Val> inputs;
    for (size_t i = 0; i < n.input_count() && !n.failed(); ++i) {
      const bool list = n.is_list(n.in(i), NodeImport::ListKind::sequence);
      if (list && n.items(i).size() != count)
        n.invalid(llvm::formatv("sequences of {0} and {1} items", count, n.items(i).size()).str());
      else inputs.push_back(list ? n.items(i)[iteration] : n.in(i));
    }
    const auto results = n.inlined(*body, inputs);
    if (!results) return;
    for (size_t i = 0; i < outputs.size(); ++i) outputs[i].push_back((*results)[i]);
  }
  for (size_t i = 0; i < outputs.size(); ++i) n.set(i, n.sequence(std::move(outputs[i])));
}

}  // namespace tw::onnx_import
