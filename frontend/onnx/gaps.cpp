#include "frontend/onnx/gaps.h"

namespace tw {
namespace {

std::string node_list(const std::vector<std::string>& nodes, size_t limit) {
  std::string text;
  for (size_t i = 0; i < nodes.size() && i < limit; ++i) text += (i ? ", " : "") + nodes[i];
  if (nodes.size() > limit) text += llvm::formatv(" and {0} more", nodes.size() - limit).str();
  return text;
}

}  // namespace

std::string print_gaps(const std::vector<Gap>& gaps) {
  std::string text;
  for (const Gap& gap : gaps) {
    text += llvm::formatv("{0} ({1}): {2}\n", gap.op, gap.nodes.size(), gap.problem).str();
    if (!gap.nodes.empty()) text += "  at: " + node_list(gap.nodes, 8) + "\n";
    if (!gap.advice.empty()) text += "  do: " + gap.advice + "\n";
  }
  return text;
}

namespace onnx_import {

void Gaps::add(DiagCode code, const std::string& op, const std::string& problem,
               const std::string& advice, const std::string& node) {
  for (Gap& gap : list_)
    if (gap.op == op && gap.problem == problem && gap.advice == advice) {
      gap.nodes.push_back(node);
      return;
    }
  list_.push_back({code, op, problem, advice, {node}});
}

void Gaps::add(const std::vector<Gap>& others) {
  for (const Gap& gap : others)
    for (const std::string& node : gap.nodes) add(gap.code, gap.op, gap.problem, gap.advice, node);
}

Error Gaps::error(const std::string& path) const {
  std::vector<Diag> diags;
  for (const Gap& gap : list_) {
    Diag diag{gap.code,
              llvm::formatv("{0} (x{1}): {2}", gap.op, gap.nodes.size(), gap.problem).str(),
              {path, 0, 0},
              {}};
    diag.notes.push_back("at " + node_list(gap.nodes, 8));
    if (!gap.advice.empty()) diag.notes.push_back(gap.advice);
    diags.push_back(std::move(diag));
  }
  return make_error(std::move(diags));
}

}  // namespace onnx_import
}  // namespace tw
