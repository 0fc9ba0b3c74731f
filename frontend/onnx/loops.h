// Import of the iterations of a Loop or a Scan. A known and short loop is unrolled; another becomes
// a node that runs the body as a region.
#pragma once
#include "frontend/onnx/node_import.h"

namespace tw::onnx_import {

// A Loop or a Scan. Inputs of the body: with `counts`, the iteration and the condition; the carried
// values; a slice of each sliced value. Outputs of the body: with `counts`, the next condition; the
// carried values; a slice of each stacked result.
struct LoopSpec {
  const OnnxGraph* body = nullptr;
  bool counts = false;
  Val condition;                     // invalid: true
  std::optional<Expr> trip;          // nullopt: as long as the condition is true
  std::vector<Val> carried, sliced;  // sliced along axis 0
  std::vector<bool> wanted;          // by stacked result
  // By carried value: the axis along which each iteration makes it longer, and by how much;
  // import_loop sets it
  std::vector<std::optional<std::pair<size_t, Expr>>> growth;
  bool lists = true;  // sequences that grow are wanted
  // By stacked result: the size of a row, if the body computes it; import_loop sets it
  std::vector<std::optional<Shape>> rows;
  bool sizes = false;  // stacks the sizes of rows, not the rows
  // By carried value, for a loop that only counts its iterations: the condition never depends on it
  std::vector<bool> idle;
  // A first loop gave the trip count, so the condition need not be checked
  bool counted = false;
  size_t stacked_count() const { return body->outputs.size() - carried.size() - (counts ? 1 : 0); }
};
struct Results {
  std::vector<Val> carried, stacked;  // stacked along axis 0; invalid where not wanted
  Val count;                          // number of iterations, if a condition may end them
};

// nullopt after a failure.
std::optional<Results> import_loop(NodeImport& n, LoopSpec spec);

// The bool, if it is known while compiling; an invalid value counts as true
std::optional<bool> known_bool(NodeImport& n, Val v);
// The row at `at` along axis 0, without that axis
Val row(NodeImport& n, Val v, const Expr& at);
Val stack(NodeImport& n, const std::vector<Val>& rows);  // along a new axis 0
// The draft as a region with these outputs.
Region finished(NodeImport& n, RegionDraft& draft, const std::vector<Val>& outputs,
                const char* name);

}  // namespace tw::onnx_import
