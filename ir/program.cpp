// Workspace layout and text of programs.
#include "ir/program.h"

#include "ir/simplify.h"

namespace tw {

WorkspaceLayout workspace_layout(const Kernel& kernel) {
  WorkspaceLayout layout;
  layout.offsets.resize(kernel.buffers.size());
  Ranges symbols;
  for (const std::string& symbol : kernel.symbols) symbols[symbol] = Range{Expr(1), Expr()};
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    const Buffer& buffer = kernel.buffers[i];
    if (buffer.role != BufferRole::temp || buffer.scope != "global") continue;
    Expr bytes(dtype_bytes(buffer.dtype));
    for (const Expr& extent : buffer.shape) bytes = bytes * extent;
    layout.offsets[i] = layout.bytes;
    layout.bytes = simplify(layout.bytes + ceil_div(bytes, 64) * Expr(64), symbols);
  }
  return layout;
}

static std::string place_text(const Operand& operand) {
  switch (operand.place) {
    case Place::input: return "input " + std::to_string(operand.index);
    case Place::output: return "output " + std::to_string(operand.index);
    case Place::arena: return "arena[" + to_string(operand.offset) + "]";
    case Place::weights: return "weights[" + to_string(operand.offset) + "]";
  }
  TW_UNREACHABLE("bad place");
}

std::string print(const Program& program) {
  std::string text = "program @" + program.name + "(";
  for (size_t i = 0; i < program.symbols.size(); ++i) text += (i ? ", " : "") + program.symbols[i];
  text += ")\n";
  auto tensors = [&](const char* word, const std::vector<TensorSpec>& specs) {
    for (const TensorSpec& spec : specs) {
      text += std::string("  ") + word + " \"" + spec.name + "\": " + dtype_name(spec.dtype) + "[";
      for (size_t i = 0; i < spec.dims.size(); ++i) text += (i ? ", " : "") + to_string(spec.dims[i]);
      text += "]\n";
    }
  };
  tensors("input", program.inputs);
  tensors("output", program.outputs);
  text += "  arena " + to_string(program.arena_bytes) + " bytes, weights " + std::to_string(program.weight_bytes) + " bytes\n";
  for (const KernelCall& call : program.calls) {
    text += "  call @" + program.kernels[static_cast<size_t>(call.kernel)].name + "(";
    for (size_t i = 0; i < call.arguments.size(); ++i) text += (i ? ", " : "") + place_text(call.arguments[i]);
    text += ") workspace[" + to_string(call.workspace) + "]  // " + call.name + "\n";
  }
  for (const Kernel& kernel : program.kernels) text += "\n" + print(kernel);
  return text;
}

}  // namespace tw
