// Workspace layout and the printed form of a program. The form is for people and golden tests;
// nothing parses it.
#include "ir/program.h"

#include "ir/kernel/interpreter.h"
#include "ir/simplify.h"
#include "support/lexer.h"

namespace tw {

WorkspaceLayout workspace_layout(const Kernel& kernel, int threads) {
  constexpr int kAlignment = 64;
  Ranges ranges;
  for (const std::string& symbol : kernel.symbols) ranges[symbol] = symbol_range(symbol);
  WorkspaceLayout layout;
  layout.offsets.resize(kernel.buffers.size());
  for (const char* scope : {"global", "thread"}) {
    const Expr begin = layout.bytes;
    for (size_t i = 0; i < kernel.buffers.size(); ++i) {
      const Buffer& b = kernel.buffers[i];
      if (b.role != BufferRole::temp || b.scope != scope) continue;
      layout.offsets[i] = layout.bytes;
      Expr bytes = dtype_bytes(b.dtype);
      for (const Expr& extent : b.shape) bytes = bytes * extent;
      layout.bytes = simplify(layout.bytes + ceil_div(bytes, kAlignment) * kAlignment, ranges);
    }
    layout.slice_bytes = simplify(layout.bytes - begin, ranges);
  }
  layout.bytes = simplify(layout.bytes + layout.slice_bytes * Expr(threads - 1), ranges);
  return layout;
}

namespace {

std::string list(const std::vector<Expr>& items) {
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) out += (i ? ", " : "") + to_string(items[i]);
  return "[" + out + "]";
}

std::string operand_text(const Operand& o) {
  std::string at = is_const(o.offset, 0) ? "" : "[" + to_string(o.offset) + "]";
  switch (o.place) {
    case Place::input: return "input " + std::to_string(o.index) + at;
    case Place::output: return "output " + std::to_string(o.index) + at;
    case Place::arena: return "arena[" + to_string(o.offset) + "]";
    case Place::weights: return "weights[" + to_string(o.offset) + "]";
    case Place::growable: return "room " + std::to_string(o.index) + at;
  }
  TW_UNREACHABLE("bad place");
}

std::string extern_text(const KernelCall& call) {
  auto views = [&](const std::vector<ExternCall::View>& list_of_views) {
    std::string out;
    for (const ExternCall::View& v : list_of_views)
      out += (out.empty() ? "" : ", ") +
             (v.argument < 0 ? "none"
                             : operand_text(call.arguments[static_cast<size_t>(v.argument)]) +
                                   (v.device ? " on " + std::to_string(v.device) : "") + " " +
                                   dtype_name(v.dtype) + list(v.dims));
    return out;
  };
  return "(" + views(call.function->inputs) + ") -> (" + views(call.function->outputs) + ") ; " +
         call.name + "\n";
}

std::string step_text(const Program& program, const SizeStep& step) {
  switch (step.kind) {
    case SizeStep::Kind::read: {
      std::string out = "  read " + program.data_symbols[static_cast<size_t>(step.symbol)] + " = " +
                        operand_text(step.at) + " " + dtype_name(step.dtype);
      if (step.bound.defined()) out += " <= " + to_string(step.bound);
      if (step.equals.defined()) out += " == " + to_string(step.equals);
      return out + " ; " + step.what + "\n";
    }
    case SizeStep::Kind::check:
      return "  check " + to_string(step.equals) + " ; " + step.what + "\n";
    case SizeStep::Kind::within: {
      const std::string wanted = step.least.defined() ? "in " + to_string(step.least) + " to " +
                                                            to_string(step.bound)
                                                      : "true";
      return "  look at " + operand_text(step.at) + " " + dtype_name(step.dtype) + ", " +
             to_string(step.bytes) + " bytes, all " + wanted + " ; " + step.what + "\n";
    }
    case SizeStep::Kind::grow:
      return "  grow " + operand_text(step.at) + " to " + to_string(step.bytes) + " bytes\n";
  }
  TW_UNREACHABLE("bad step");
}

std::string call_text(const Program& program, const KernelCall& call) {
  std::string out = call.is_transfer() ? "  move " + std::to_string(call.from) + " to " +
                                             std::to_string(call.device) + " @"
                    : call.moves       ? "  move on " + std::to_string(call.device) + " @"
                    : call.device      ? "  call on " + std::to_string(call.device) + " @"
                                       : "  call @";
  if (call.function)
    return (call.function->region ? "  run " : "  call tw_op_") + call.function->function +
           extern_text(call);
  out += program.kernels[static_cast<size_t>(call.kernel)].name;
  if (!call.symbols.empty()) out += list(call.symbols);
  out += "(";
  for (size_t i = 0; i < call.arguments.size(); ++i)
    out += (i ? ", " : "") + operand_text(call.arguments[i]);
  return out + ") workspace " +
         (call.workspace_buffer < 0 ? "" : "room " + std::to_string(call.workspace_buffer) + " ") +
         to_string(call.workspace) + " ; " + call.name + "\n";
}

}  // namespace

std::vector<Constant> constants_of(const RunKernel& run, const std::vector<Constant>& lowered) {
  std::vector<Constant> constants;
  for (const ParameterSource& source : run.sources) {
    Constant& made = constants.emplace_back(lowered[source.parameter]);
    TW_CHECK(!made.pack || !source.pack, "a constant of '{0}' is packed twice", run.kernel.name);
    if (source.pack) made.pack = source.pack;
  }
  return constants;
}

Expected<std::vector<std::byte>> contents(const Constant& constant) {
  if (!constant.pack)
    return std::vector<std::byte>(constant.source.bytes.begin(), constant.source.bytes.end());
  std::vector<KernelArgument> arguments(2);
  arguments[0].bytes.assign(constant.source.bytes.begin(), constant.source.bytes.end());
  int64_t bytes = dtype_bytes(constant.pack->buffers[1].dtype);
  for (const Expr& extent : constant.pack->buffers[1].shape) bytes *= as_const(extent).value_or(0);
  arguments[1].bytes.resize(static_cast<size_t>(bytes));
  TW_TRY(interpret(*constant.pack, arguments));
  return std::move(arguments[1].bytes);
}

uint64_t add_weights(Program& program, int device, WeightPiece piece) {
  DeviceProgram& own = program.devices[static_cast<size_t>(device) - 1];
  const uint64_t at = own.weights_offset + own.weight_bytes, added = (piece.size + 63) / 64 * 64;
  for (WeightPiece& other : program.weights)
    if (other.offset >= at) other.offset += added;
  for (DeviceProgram& other : program.devices)
    if (&other != &own && other.weights_offset >= at) other.weights_offset += added;
  piece.offset = at;
  program.weights.push_back(std::move(piece));
  program.weight_bytes += added;
  own.weight_bytes += added;
  return at - own.weights_offset;
}

const WeightPiece* find_weights(const Program& program, int device, const Operand& operand) {
  const std::optional<int64_t> offset = as_const(operand.offset);
  if (operand.place != Place::weights || !offset) return nullptr;
  const uint64_t at = program.devices[static_cast<size_t>(device) - 1].weights_offset +
                      static_cast<uint64_t>(*offset);
  for (const WeightPiece& piece : program.weights)
    if (piece.offset == at && piece.size > 0) return &piece;
  return nullptr;
}

std::vector<bool> kernels_of(const Program& program, int device) {
  std::vector<bool> here(program.kernels.size()), called(program.kernels.size());
  const auto note = [&](const Program& calls) {
    for (const KernelCall& call : calls.calls) {
      if (call.function) continue;
      const auto k = static_cast<size_t>(call.kernel);
      called[k] = true;
      if (call.device == device && !call.is_transfer() && !call.moves) here[k] = true;
    }
  };
  note(program);
  std::ranges::for_each(program.regions, note);  // includes the inner regions
  for (size_t k = 0; k < called.size(); ++k)
    if (!called[k] && device == 0) here[k] = true;
  return here;
}

std::string print(const Program& program) {
  std::string out = "program " + quoted(program.name);
  for (size_t i = 0; i < program.symbols.size(); ++i) out += (i ? ", " : "[") + program.symbols[i];
  out += program.symbols.empty() ? " {\n" : "] {\n";
  auto tensors = [&](const char* what, const std::vector<TensorSpec>& specs) {
    for (size_t i = 0; i < specs.size(); ++i)
      out += std::string("  ") + what + " " + std::to_string(i) + " " + quoted(specs[i].name) +
             ": " + dtype_name(specs[i].dtype) + list(specs[i].dims) + "\n";
  };
  tensors("input", program.inputs);
  tensors("output", program.outputs);
  out += "  arena " + to_string(program.arena_bytes) + " bytes ; " +
         std::to_string(program.naive_arena_bytes) + " without sharing\n";
  out += "  weights " + std::to_string(program.weight_bytes) + " bytes\n";
  for (size_t d = 0; d < program.devices.size(); ++d)
    out += "  device " + std::to_string(d + 1) + ": arena " +
           to_string(program.devices[d].arena_bytes) + " bytes, weights at " +
           std::to_string(program.devices[d].weights_offset) + ", " +
           std::to_string(program.devices[d].weight_bytes) + " bytes\n";
  for (const WeightPiece& w : program.weights)
    out += "  weight [" + std::to_string(w.offset) + "] " + quoted(w.name) + ": " +
           std::to_string(w.size) + " bytes" + (w.pack ? " packed by @" + w.pack->name : "") + "\n";
  for (const SizeCondition& condition : program.conditions)
    out += "  needs " + to_string(condition.holds) + " ; " + condition.what + "\n";
  auto step = program.steps.begin();
  for (size_t c = 0; c <= program.calls.size(); ++c) {
    for (; step != program.steps.end() && step->before == c; ++step)
      out += step_text(program, *step);
    if (c < program.calls.size()) out += call_text(program, program.calls[c]);
  }
  for (size_t r = 0; r < program.regions.size(); ++r) {
    const Program& region = program.regions[r];
    out += "  region " + std::to_string(r) + " " + quoted(region.name) + ": arena " +
           to_string(region.arena_bytes) + " bytes\n";
    auto inner = region.steps.begin();
    for (size_t c = 0; c < region.calls.size(); ++c) {
      for (; inner != region.steps.end() && inner->before == c; ++inner)
        out += "  " + step_text(region, *inner);
      out += "  " + call_text(program, region.calls[c]);
    }
  }
  out += "}\n";
  for (const Kernel& kernel : program.kernels) out += "\n" + print(kernel);
  return out;
}

}  // namespace tw
