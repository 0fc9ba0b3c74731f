// Which loop below a parallel one shares out its iterations too. A parallel loop of few iterations
// (the channel groups of a narrow layer) would leave threads without work; with the loop inside it,
// begin and end of a chunk may lie within a row.
#pragma once
#include "ir/kernel/kernel.h"

namespace tw::codegen {

// The loop right inside `parallel`, when there is nothing beside it and its iterations are
// independent across threads: serial, spatial, of constant extent; what is stored in it goes to
// outputs, without combining and without being read back, or to buffers that each thread has to
// itself. Null: none, or `parallel` has iterations enough.
const StmtNode* shared_loop(const Kernel& kernel, const Stmt& parallel);

}  // namespace tw::codegen
