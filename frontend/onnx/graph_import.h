// Import of the nodes of one ONNX graph by their importers. It is the main graph, or a graph in a
// node's attributes, whose nodes take the node's place or become a region. Such a graph sees the
// names around it.
#pragma once
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_map>

#include "frontend/onnx/gaps.h"
#include "frontend/onnx/import_table.h"
#include "frontend/onnx/node_import.h"

namespace tw::onnx_import {

// The state that the graphs of one model share.
struct ImportState {
  Gaps gaps;
  std::vector<std::string> warnings;
  int64_t nodes_left = 200'000;  // nodes that may still be imported; unrolling multiplies them
  int symbols = 0;               // symbols made so far
};

class GraphImport : public Bodies {
 public:
  // `outer` is the graph around this one; null for the main graph.
  GraphImport(const OnnxGraph& graph, Builder& builder, ImportState& state,
              GraphImport* outer = nullptr)
      : graph_(graph), builder_(builder), state_(state), outer_(outer) {}
  // The body of a region. It reads values around it through inputs that are added to the draft.
  GraphImport(const OnnxGraph& graph, RegionDraft& draft, ImportState& state, GraphImport& outer)
      : graph_(graph), builder_(draft.builder), state_(state), outer_(&outer), draft_(&draft) {}

  // Binds an input; an invalid value means that its problem was reported.
  void bind(const std::string& name, Val v) { values_[name] = v; }
  void run();  // imports the nodes that the outputs need
  // The value of the graph's output; invalid if its problem was reported.
  Val output(const std::string& name);

  std::optional<std::vector<Val>> inlined(const OnnxGraph& body,
                                          const std::vector<Val>& inputs) override;
  std::unique_ptr<RegionDraft> region(const OnnxGraph& body, const Inputs& inputs) override;
  std::unique_ptr<RegionDraft> branch(const OnnxGraph& body, std::string& misfit) override;
  void warn(const std::string& text) override {  // a text once: a body may be imported twice
    if (!std::ranges::count(state_.warnings, text)) state_.warnings.push_back(text);
  }
  std::string fresh_symbol(const std::string& stem) override;

 private:
  const Val* find(const std::string& name);
  Val capture(Val v);
  bool lacks_dtype(const std::string& name, int& element_type) const;
  void import_initializers();
  void find_wanted();
  void import_node(const OnnxNode& node);
  void run_importer(const OnnxNode& node, const ImportRow& row, std::vector<Val> inputs);
  void report_unsupported(const OnnxNode& node);

  const OnnxGraph& graph_;
  Builder& builder_;
  ImportState& state_;
  GraphImport* outer_;
  RegionDraft* draft_ = nullptr;
  std::map<Val, Val> captures_;                   // value around the region -> value in it
  std::unordered_map<std::string, Val> values_;   // invalid: a problem of its maker was reported
  std::map<std::string, int> initializer_types_;  // element types that have no DType
  std::set<std::string> wanted_;
  std::vector<bool> live_;
};

std::string full_name(const OnnxNode& node);  // with the operator's domain

}  // namespace tw::onnx_import
