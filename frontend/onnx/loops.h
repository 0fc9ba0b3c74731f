// The iterations of a Loop or a Scan: unrolled where they are known and short, else a node that
// runs the body as a region.
#pragma once
#include "frontend/onnx/node_import.h"

namespace tw::onnx_import {

// A Loop or a Scan. The body's inputs: with `counts`, the iteration and the condition; the carried
// values; a slice of each sliced value. Its outputs: with `counts`, the next condition; the carried
// values; a slice of each stacked result.
struct LoopSpec {
  const OnnxGraph* body = nullptr;
  bool counts = false;
  Val condition;                     // invalid: true
  std::optional<Expr> trip;          // none: as long as the condition is true
  std::vector<Val> carried, sliced;  // sliced along axis 0
  std::vector<bool> wanted;          // by stacked result
  // By carried value: an axis along which each iteration makes it longer, and by how much;
  // import_loop finds it
  std::vector<std::optional<std::pair<size_t, Expr>>> growth;
  bool lists = true;  // those that grow are wanted
  // By stacked result: the size of a row, of one whose size the body computes; import_loop finds it
  std::vector<std::optional<Shape>> rows;
  bool sizes = false;  // of stacked results the sizes of their rows alone
  // By carried value, of a loop that counts its iterations alone: its condition never depends on it
  std::vector<bool> idle;
  // The trip count is that of a loop before: the condition says the same
  bool counted = false;
  size_t stacked_count() const { return body->outputs.size() - carried.size() - (counts ? 1 : 0); }
};
struct Results {
  std::vector<Val> carried, stacked;  // stacked along axis 0; invalid where not wanted
  Val count;                          // of the iterations, where a condition may end them
};

// Nothing after a failure.
std::optional<Results> import_loop(NodeImport& n, LoopSpec spec);

// One bool that is known while compiling; an invalid value is true
std::optional<bool> known_bool(NodeImport& n, Val v);
// Number `at` along axis 0, without that axis
Val row(NodeImport& n, Val v, const Expr& at);
Val stack(NodeImport& n, const std::vector<Val>& rows);  // along a new axis 0
// The region with these outputs.
Region finished(NodeImport& n, RegionDraft& draft, const std::vector<Val>& outputs,
                const char* name);

}  // namespace tw::onnx_import
