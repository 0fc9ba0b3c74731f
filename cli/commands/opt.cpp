// tilewright opt: runs passes or a schedule on a text file, as the IRs' workbench. A file holds a
// graph, or kernels that may each be followed by a schedule.
#include <llvm/Support/MemoryBuffer.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <ostream>

#include "cli/commands/commands.h"
#include "cli/targets.h"
#include "driver/compare/compare.h"
#include "driver/compile/example_sizes.h"
#include "driver/run/tensors.h"
#include "frontend/frontend.h"
#include "ir/kernel/bounds.h"
#include "ir/kernel/interpreter.h"
#include "ir/schedule/constant_stages.h"
#include "ir/schedule/schedule.h"
#include "passes/pass.h"

namespace tw {
namespace {

struct OptArgs {
  std::string file, schedule, target = "host";
  std::vector<std::string> passes, dims;
  std::optional<uint64_t> interpret;
  double tolerance = 1e-5;
  bool verify = false, bounds = false, as_run = false;
};

Expected<std::string> read_file(const std::string& path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, true, false);
  if (!buffer)
    return make_error(DiagCode::io, "cannot read '{0}': {1}", path, buffer.getError().message());
  return (*buffer)->getBuffer().str();
}

// The position of the first line from `begin` on that begins with `word`; npos: none does. `begin`
// is the beginning of a line.
size_t line_with(const std::string& text, const std::string& word, size_t begin = 0) {
  if (text.compare(begin, word.size(), word) == 0) return begin;
  const size_t found = text.find("\n" + word, begin);
  return found == std::string::npos ? found : found + 1;
}

struct Parts {
  std::string kernel, schedule;  // blank lines in front keep the line numbers
};

std::vector<Parts> split_file(const std::string& text) {
  const auto from = [&](size_t begin, size_t end) {
    return std::string(static_cast<size_t>(std::count(
                           text.begin(), text.begin() + static_cast<std::ptrdiff_t>(begin), '\n')),
                       '\n') +
           text.substr(begin, end - begin);
  };
  std::vector<Parts> parts;
  for (size_t at = 0; at < text.size();) {  // a kernel's comments before it belong to it
    const size_t kernel = line_with(text, "kernel ", at);
    const size_t end = std::min(
        line_with(text, "kernel ", std::min(text.find('\n', kernel), text.size() - 1) + 1),
        text.size());
    const size_t schedule = std::min(line_with(text, "schedule", kernel), end);
    parts.push_back({from(at, schedule), schedule < end ? from(schedule, end) : ""});
    at = end;
  }
  return parts;
}

// Copies each element between a tensor and one with blocks along a dimension.
void copy_blocks(Tensor& plain, Tensor& blocked, const step::Block& block, bool to_blocks) {
  const auto size = static_cast<size_t>(dtype_bytes(plain.dtype));
  const auto dim = static_cast<size_t>(block.dim);
  for (int64_t i = 0; i < plain.size(); ++i) {
    std::vector<int64_t> at(plain.shape.size());
    for (int64_t rest = i, d = static_cast<int64_t>(at.size()); d-- > 0;) {
      at[static_cast<size_t>(d)] = rest % plain.shape[static_cast<size_t>(d)];
      rest /= plain.shape[static_cast<size_t>(d)];
    }
    at.push_back(at[dim] % block.factor);
    at[dim] /= block.factor;
    int64_t place = 0;
    for (size_t d = 0; d < at.size(); ++d) place = place * blocked.shape[d] + at[d];
    std::byte *own = plain.bytes.data() + static_cast<size_t>(i) * size,
              *there = blocked.bytes.data() + static_cast<size_t>(place) * size;
    to_blocks ? std::memcpy(there, own, size) : std::memcpy(own, there, size);
  }
}

// A tensor of zeros in blocks, for one of this shape
Tensor with_blocks(const DType dtype, std::vector<int64_t> shape, const step::Block& block) {
  const auto dim = static_cast<size_t>(block.dim);
  shape[dim] = (shape[dim] + block.factor - 1) / block.factor;
  shape.push_back(block.factor);
  return Tensor::zeros(dtype, std::move(shape));
}

// Runs what the schedule has made of a kernel, or the kernel itself with no schedule, on random
// inputs. The outputs have the kernel's shapes.
Expected<std::vector<Tensor>> run_kernel(const Kernel& kernel, const Kernel& made,
                                         const Schedule& schedule, uint64_t seed,
                                         const std::map<std::string, int64_t>& symbols) {
  for (const std::string& s : kernel.symbols)
    if (!symbols.contains(s))
      return make_error(DiagCode::invalid_argument,
                        "the kernel's symbol '{0}' is free: give --dim {0}=N", s);
  std::vector<std::vector<Tensor>> forms;  // each parameter, then the same with blocks
  std::vector<KernelArgument> arguments;
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    const Buffer& b = kernel.buffers[i];
    if (b.role == BufferRole::temp) continue;
    std::vector<int64_t> shape;
    for (const Expr& e : b.shape)
      shape.push_back(
          eval_int(e, [&](std::string_view name) { return symbols.at(std::string(name)); }));
    std::vector<Tensor>& own = forms.emplace_back();
    own.push_back(b.role == BufferRole::output ? Tensor::zeros(b.dtype, shape)
                                               : random_tensor(b.dtype, shape, seed, i));
    for (const step::Block& block : blocks_of(schedule, b.name)) {
      own.push_back(with_blocks(b.dtype, own.back().shape, block));
      copy_blocks(own[own.size() - 2], own.back(), block, true);
    }
    arguments.push_back({own.back().bytes});
  }
  TW_TRY(interpret(made, arguments, symbols));
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < forms.size(); ++i) {  // parameters are the first buffers
    if (kernel.buffers[i].role != BufferRole::output) continue;
    std::vector<Tensor>& own = forms[i];
    own.back().bytes = std::move(arguments[i].bytes);
    const std::vector<step::Block> blocks = blocks_of(schedule, kernel.buffers[i].name);
    for (size_t b = blocks.size(); b-- > 0;) copy_blocks(own[b], own[b + 1], blocks[b], false);
    outputs.push_back(std::move(own.front()));
  }
  return outputs;
}

// Prints the text whether the results are the same or not.
Expected<int> finish(const OptArgs& args, Console& console, const std::string& text,
                     const std::vector<Tensor>& before, const std::vector<Tensor>& after) {
  Json::Array list;
  std::string lines;
  bool same = true;
  for (size_t i = 0; i < before.size(); ++i) {
    const Difference d = compare(after[i], before[i], args.tolerance);
    same &= d.same;
    list.push_back(to_json(d));
    lines += std::string(d.same ? "; ok   " : "; OFF  ") + "output " + std::to_string(i) + ": " +
             to_string(d) + "\n";
  }
  if (console.json) {
    Json::Object result{{"ok", same}, {"text", text}};
    if (args.interpret) result.push_back({"outputs", list});
    write_json(console, result);
  } else if (args.verify && !args.interpret) {
    console.out << "ok\n";
  } else {
    console.out << text << lines;
  }
  return same ? int{kExitOk} : int{kExitMismatch};
}

bool knows(const Target& place, const Step& step) {
  if (const auto* bind = std::get_if<step::Bind>(&step))
    return std::ranges::find(place.axes, bind->axis, &DeviceAxis::name) != place.axes.end();
  const std::vector<std::string> scopes = scopes_of(&place);
  if (const std::string* scope = scope_of(step))
    return std::ranges::find(scopes, *scope) != scopes.end();
  const auto* tensorize = std::get_if<step::Tensorize>(&step);
  return !tensorize || place.find_intrinsic(tensorize->intrinsic);
}

// The processor or the device for which the schedule was made: the first one that has the axes,
// scopes and instructions that its steps name
const Target& place_of(const Target& target, const Schedule& schedule) {
  const auto knows_all = [&](const Target& place) {
    return std::ranges::all_of(schedule.steps,
                               [&](const Step& step) { return knows(place, step); });
  };
  if (knows_all(target)) return target;
  const auto device = std::ranges::find_if(target.devices, knows_all);
  return device == target.devices.end() ? target : *device;
}

Expected<int> opt_kernels(const OptArgs& args, Console& console, const std::string& text) {
  TW_ASSIGN(const Target target, load_target(args.target, config_dirs()));
  TW_ASSIGN(const auto dims, parse_dims(args.dims));
  Schedule given;
  if (!args.schedule.empty()) {
    TW_ASSIGN(const std::string other, read_file(args.schedule));
    TW_ASSIGN(given, parse_schedule(other, args.schedule));
  }
  std::string results;
  std::vector<Tensor> before, after;
  const std::vector<Parts> list = split_file(text);
  for (const Parts& parts : list) {
    TW_ASSIGN(const Kernel kernel, parse_kernel(parts.kernel, args.file));
    TW_TRY(tw::verify(kernel));
    Schedule schedule = given;
    if (args.schedule.empty() && !parts.schedule.empty()) {
      TW_ASSIGN(schedule, parse_schedule(parts.schedule, args.file));
    }
    TW_ASSIGN(const Kernel result, tw::apply(kernel, schedule, &place_of(target, schedule)));
    if (args.bounds) TW_TRY(check_bounds(result, Tables::ours));
    results += print(args.as_run ? take_out_constant_stages(result).kernel : result) +
               (list.size() > 1 ? "\n" : "");
    if (!args.interpret) continue;
    TW_ASSIGN(std::vector<Tensor> wanted, run_kernel(kernel, kernel, {}, *args.interpret, dims));
    TW_ASSIGN(std::vector<Tensor> got, run_kernel(kernel, result, schedule, *args.interpret, dims));
    std::ranges::move(wanted, std::back_inserter(before));
    std::ranges::move(got, std::back_inserter(after));
  }
  return finish(args, console, results, before, after);
}

Expected<int> opt_graph(const OptArgs& args, Console& console, const std::string& text) {
  TW_ASSIGN(const Graph graph, parse_graph(text, args.file));
  TW_TRY(tw::verify(graph));
  for (const std::string& name : args.passes)
    if (!find_pass(name))
      return make_error(DiagCode::invalid_argument, "--passes: there is no pass '{0}'", name);
  TW_ASSIGN(const Target target, load_target(args.target, config_dirs()));
  Graph result = graph;
  PassContext context{target};
  RunOptions options;
  options.verify_each = true;
  TW_TRY(run_passes(result, context, args.passes, options));
  std::vector<Tensor> before, after;
  if (args.interpret) {
    InputSources flags;
    flags.dims = args.dims;
    flags.random = args.interpret;
    TW_ASSIGN(const Inputs inputs, load_inputs(input_specs(graph), flags));
    TW_ASSIGN(before, evaluate(graph, inputs.tensors));
    TW_ASSIGN(after, evaluate(result, inputs.tensors));
  }
  return finish(args, console, print(result), before, after);
}

Expected<int> opt(const OptArgs& args, Console& console) {
  TW_ASSIGN(const std::string text, read_file(args.file));
  const bool kernel = line_with(text, "kernel ") != std::string::npos,
             graph = line_with(text, "graph ") != std::string::npos;
  if (kernel == graph)
    return make_error(Diag{DiagCode::parse,
                           "a line must begin with 'graph' or with 'kernel', not both",
                           {args.file, 0, 0},
                           {}});
  if (graph && !args.schedule.empty())
    return make_error(DiagCode::invalid_argument, "--schedule is for kernels; '{0}' holds a graph",
                      args.file);
  if (graph && args.as_run)
    return make_error(DiagCode::invalid_argument, "--as-run is for kernels; '{0}' holds a graph",
                      args.file);
  if (kernel && !args.passes.empty())
    return make_error(DiagCode::invalid_argument, "--passes are for graphs; '{0}' holds a kernel",
                      args.file);
  return kernel ? opt_kernels(args, console, text) : opt_graph(args, console, text);
}

}  // namespace

CommandRun define_opt(Flags& flags) {
  auto args = std::make_shared<OptArgs>();
  flags.argument("FILE", args->file,
                 "Text of a graph, or of kernels that a 'schedule { ... }' may follow each");
  flags.comma_list("--passes", args->passes, "P,P", "Graph passes to run, in this order");
  flags.text("--schedule", args->schedule, "FILE",
             "The schedule to apply, instead of the file's own");
  flags.text("-t,--target", args->target, "NAME|FILE",
             "Target that passes and steps read from; default: this machine");
  flags.flag("--verify", args->verify, "Only check: print 'ok' instead of the result");
  flags.flag("--bounds", args->bounds,
             "Show of kernels that they stay inside of their buffers, as before code of a "
             "schedule from a log is run");
  flags.flag("--as-run", args->as_run,
             "Print kernels without the stages that fill constants, which run while a model is "
             "compiled");
  flags.seed("--interp", args->interpret, "Run before and after on random inputs, and compare");
  flags.repeated("--dim", args->dims, "NAME=N", "Value of a symbol, for --interp");
  flags.number("--tolerance", args->tolerance, "T",
               "Largest error that passes, relative to an output's range; default 1e-5");
  return [args](Console& console) { return opt(*args, console); };
}

}  // namespace tw
