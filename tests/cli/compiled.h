// Compiles a graph for this machine, runs it once and gives the outputs; a failing step fails the
// test.
#pragma once
#include "driver/compile/compile.h"
#include "packager/loaded_model.h"

namespace tw::test {
// Compiles a graph to a library in memory.
LoadedModel compile_for(const Graph& graph, const Target& target,
                        const AlgorithmOptions& algorithms = {});
// Returns the report of a compile, with the text that options.emit asks for.
CompileReport report_of(const Graph& graph, const Target& target, const CompileOptions& options);
CompileReport report_of(const Graph& graph, const Target& target, Emit emit,
                        const AlgorithmOptions& algorithms = {});
tw_tensor describe(Tensor& t);
// `like` has tensors of the outputs' types and shapes.
std::vector<Tensor> run_compiled(const Graph& graph, std::vector<Tensor> inputs,
                                 const std::vector<Tensor>& like, const Target& target, int threads,
                                 const AlgorithmOptions& algorithms = {});
}  // namespace tw::test
