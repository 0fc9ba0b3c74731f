// The nodes of one ONNX graph, through their importers: the main graph's, or in place of a node
// those of a graph in its attributes, which sees the names around it.
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

// What the graphs of one model share.
struct ImportState {
  Gaps gaps;
  std::vector<std::string> warnings;
  int64_t nodes_left = 200'000;  // that may be imported: bodies in place of loops multiply them
  int symbols = 0;               // made so far
};

class GraphImport : public Bodies {
 public:
  // `outer`: the graph around it, null for the main one.
  GraphImport(const OnnxGraph& graph, Builder& builder, ImportState& state,
              GraphImport* outer = nullptr)
      : graph_(graph), builder_(builder), state_(state), outer_(outer) {}
  // The body of a region: it reads what is around it through inputs, which are added to the draft.
  GraphImport(const OnnxGraph& graph, RegionDraft& draft, ImportState& state, GraphImport& outer)
      : graph_(graph), builder_(draft.builder), state_(state), outer_(&outer), draft_(&draft) {}

  // An input; invalid: it was reported
  void bind(const std::string& name, Val v) { values_[name] = v; }
  void run();  // what the outputs need
  // Of the graph's output; invalid: it was reported.
  Val output(const std::string& name);

  std::optional<std::vector<Val>> inlined(const OnnxGraph& body,
                                          const std::vector<Val>& inputs) override;
  std::unique_ptr<RegionDraft> region(const OnnxGraph& body, const Inputs& inputs) override;
  std::unique_ptr<RegionDraft> branch(const OnnxGraph& body, std::string& misfit) override;
  void warn(const std::string& text) override {  // once: a body may be imported twice
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
  std::map<Val, Val> captures_;                   // of the graph around the region
  std::unordered_map<std::string, Val> values_;   // invalid: its maker was reported
  std::map<std::string, int> initializer_types_;  // of those without a DType
  std::set<std::string> wanted_;
  std::vector<bool> live_;
};

std::string full_name(const OnnxNode& node);  // with its domain

}  // namespace tw::onnx_import
