#include "frontend/onnx/graph_import.h"

#include <algorithm>

namespace tw::onnx_import {

std::string full_name(const OnnxNode& node) {
  return node.domain.empty() ? node.op_type : node.domain + "." + node.op_type;
}

void GraphImport::run() {
  import_initializers();
  find_wanted();
  for (size_t i = 0; i < graph_.nodes.size(); ++i)
    if (live_[i]) import_node(graph_.nodes[i]);
}

Val GraphImport::output(const std::string& name) {
  if (const Val* found = find(name)) return *found;
  state_.gaps.add(DiagCode::invalid_model, "output", "no node makes output '" + name + "'", "",
                  name);
  return {};
}

std::optional<std::vector<Val>> GraphImport::inlined(const OnnxGraph& body,
                                                     const std::vector<Val>& inputs) {
  GraphImport inner(body, builder_, state_, this);
  for (size_t i = 0; i < inputs.size(); ++i) inner.bind(body.inputs[i].name, inputs[i]);
  inner.run();
  std::vector<Val> outputs;
  for (const std::string& name : body.outputs) {
    outputs.push_back(inner.output(name));
    if (!outputs.back().valid()) return std::nullopt;
  }
  return outputs;
}

std::unique_ptr<RegionDraft> GraphImport::region(const OnnxGraph& body, const Inputs& inputs) {
  auto draft = std::make_unique<RegionDraft>();
  draft->builder.share_symbols(builder_);
  GraphImport inner(body, *draft, state_, *this);
  const std::vector<Val> given = inputs(draft->builder);
  for (size_t i = 0; i < given.size(); ++i) inner.bind(body.inputs[i].name, given[i]);
  inner.run();
  for (const std::string& name : body.outputs) {
    draft->outputs.push_back(inner.output(name));
    if (!draft->outputs.back().valid()) return nullptr;
  }
  return draft;
}

std::unique_ptr<RegionDraft> GraphImport::branch(const OnnxGraph& body, std::string& misfit) {
  Gaps around;
  std::swap(around, state_.gaps);
  std::unique_ptr<RegionDraft> draft = region(body, [](Builder&) { return std::vector<Val>(); });
  const std::vector<Gap> own = state_.gaps.release();
  std::swap(around, state_.gaps);
  const bool fits_not = !own.empty() && std::ranges::all_of(own, [](const Gap& gap) {
    return gap.code == DiagCode::invalid_model;
  });
  if (!fits_not) state_.gaps.add(own);
  else misfit = own.front().op + " '" + own.front().nodes.front() + "': " + own.front().problem;
  return draft;
}

std::string GraphImport::fresh_symbol(const std::string& stem) {
  std::string symbol;
  do {
    // With 0 as its least, sizes that depend on the symbol are checked like those made from data.
    symbol = symbol_name(stem + "_" + std::to_string(++state_.symbols), 0);
  } while (builder_.symbols().count(symbol));
  return symbol;
}

const Val* GraphImport::find(const std::string& name) {
  if (const auto found = values_.find(name); found != values_.end()) return &found->second;
  const Val* around = outer_ ? outer_->find(name) : nullptr;
  if (!around || !draft_ || !around->valid()) return around;
  return &(values_[name] = capture(*around));
}

// Makes a value of the graph around the region one of the region: a constant or a size again, any
// other value an input.
Val GraphImport::capture(Val v) {
  const auto [known, fresh] = captures_.try_emplace(v);
  if (!fresh) return known->second;
  Builder& around = outer_->builder_;
  Val own;
  if (const auto kind = around.list_kind(v)) {
    std::vector<Val> items;
    for (Val item : around.items(v)) items.push_back(capture(item));
    own = builder_.list(*kind, std::move(items));
  } else if (const Blob* blob = around.blob(v)) {
    own = builder_.add_constant(around.name(v), around.type(v), *blob);
  } else if (const std::vector<Expr>* elements = around.elements(v)) {
    own = builder_.known(*elements, around.type(v).dtype, around.type(v).shape);
  } else {
    own = builder_.add_input(around.name(v), around.type(v));
    draft_->captured.push_back(v);
  }
  return captures_[v] = own;
}

bool GraphImport::lacks_dtype(const std::string& name, int& element_type) const {
  for (const GraphImport* scope = this; scope; scope = scope->outer_) {
    if (!scope->values_.count(name)) continue;
    const auto found = scope->initializer_types_.find(name);
    if (found != scope->initializer_types_.end()) element_type = found->second;
    return found != scope->initializer_types_.end();
  }
  return false;
}

void GraphImport::import_initializers() {
  for (const OnnxTensor& tensor : graph_.initializers) {
    values_[tensor.name] = Val{};
    if (const auto dtype = tensor.dtype())
      values_[tensor.name] = builder_.add_constant(
          tensor.name, {*dtype, Shape(tensor.dims.begin(), tensor.dims.end()), {}}, tensor.data);
    else initializer_types_[tensor.name] = tensor.element_type;
  }
}

// Finds the values that the outputs need, backwards over the sorted nodes.
void GraphImport::find_wanted() {
  wanted_.insert(graph_.outputs.begin(), graph_.outputs.end());
  live_.assign(graph_.nodes.size(), false);
  for (size_t i = graph_.nodes.size(); i-- > 0;) {
    const OnnxNode& node = graph_.nodes[i];
    live_[i] = std::any_of(node.outputs.begin(), node.outputs.end(),
                           [&](const std::string& o) { return wanted_.count(o) > 0; });
    if (!live_[i]) continue;
    wanted_.insert(node.inputs.begin(), node.inputs.end());
    wanted_.insert(node.captures.begin(), node.captures.end());
  }
  wanted_.erase("");
}

void GraphImport::import_node(const OnnxNode& node) {
  for (const std::string& output : node.outputs) values_[output] = Val{};
  if (state_.nodes_left-- <= 0) {
    state_.gaps.add(DiagCode::limit, "model", "more than 200000 nodes with its loops unrolled", "",
                    full_name(node));
    return;
  }
  const ImportRow* row = find_importer(node.domain, node.op_type, node.since_version);
  if (!row) return report_unsupported(node);
  std::vector<Val> inputs;
  bool poisoned = false;
  for (const std::string& input : node.inputs) {
    const Val* found = input.empty() ? nullptr : find(input);
    inputs.push_back(found ? *found : Val{});
    if (input.empty()) continue;
    int element_type = 0;
    if (!found)
      state_.gaps.add(DiagCode::invalid_model, full_name(node),
                      "no node before makes input '" + input + "'",
                      "the model breaks the ONNX standard: export it again", node.name);
    else if (lacks_dtype(input, element_type))
      state_.gaps.add(DiagCode::unsupported, full_name(node),
                      "dtype " + element_type_name(element_type),
                      "convert the model to float32 or an integer type", node.name);
    poisoned = poisoned || !inputs.back().valid();
  }
  if (!poisoned) run_importer(node, *row, std::move(inputs));
}

void GraphImport::run_importer(const OnnxNode& node, const ImportRow& row,
                               std::vector<Val> inputs) {
  std::vector<bool> wanted;
  for (const std::string& output : node.outputs) wanted.push_back(wanted_.count(output) > 0);
  builder_.next_node();
  NodeImport context(builder_, *this, node, std::move(inputs), std::move(wanted));
  for (size_t i = 0; i < context.input_count() && !row.takes_lists; ++i)
    if (builder_.list_kind(context.maybe(i)))
      context.invalid(llvm::formatv("input {0} is not a tensor", i).str());
  if (!context.failed()) row.import(context);
  for (size_t i = 0; i < node.outputs.size() && !context.failed(); ++i)
    if (context.wanted(i) && !context.outputs()[i].valid())
      context.fail(llvm::formatv("output {0} is not supported", i).str(),
                   "remove the uses of this output");
  if (const auto& problem = context.problem()) {
    if (!problem->reported)
      state_.gaps.add(problem->code, full_name(node), problem->text, problem->advice, node.name);
    return;
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const Val value = context.outputs()[i];
    if (!value.valid() || node.outputs[i].empty()) continue;
    builder_.set_name(value, node.outputs[i]);
    values_[node.outputs[i]] = value;
  }
}

void GraphImport::report_unsupported(const OnnxNode& node) {
  std::string problem = "operator not supported",
              advice = "replace it by supported operators, or leave this part out of the model";
  if (!node.domain.empty() && node.since_version == 0) {
    problem = "operator of domain " + node.domain + " not supported";
    advice = "export with standard operators, or with model-local functions for it";
  } else if (node.since_version == 0) {
    problem = "no such operator at this opset";
  } else if (const ImportRow* row = find_importer_any_version(node.domain, node.op_type)) {
    problem = llvm::formatv("version {0} of the operator not supported", node.since_version).str();
    advice = llvm::formatv("export at an opset where the operator's version is {0} to {1}",
                           row->first, row->last)
                 .str();
  }
  state_.gaps.add(DiagCode::unsupported, full_name(node), problem, advice, node.name);
}

}  // namespace tw::onnx_import
