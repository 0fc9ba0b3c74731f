// Programs of lowered kernels in the interpreter: a processor and devices, each with its own
// memory. Devices do their work as late as possible, when the processor waits for them.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/kernel/interpreter.h"
#include "ir/program.h"

namespace tw::test {

using Bytes = std::vector<std::byte>;
using Symbols = std::map<std::string, int64_t>;

// Runs a kernel over pointers, one for each parameter buffer. An output at the place of an input is
// made in place.
inline void run_kernel(const Kernel& kernel, const std::vector<std::byte*>& pointers,
                       const Symbols& symbols = {}) {
  const auto value = [&](std::string_view name) { return symbols.at(std::string(name)); };
  std::vector<KernelArgument> arguments;
  std::vector<const Buffer*> buffers;
  for (const Buffer& buffer : kernel.buffers)
    if (buffer.role != BufferRole::temp) buffers.push_back(&buffer);
  REQUIRE(buffers.size() == pointers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    int64_t bytes = dtype_bytes(buffers[i]->dtype);
    for (const Expr& extent : buffers[i]->shape) bytes *= eval_int(extent, value);
    arguments.push_back({Bytes(pointers[i], pointers[i] + bytes)});
  }
  for (size_t i = 0; i < buffers.size(); ++i)
    if (const auto same = std::find(pointers.begin(), pointers.end(), pointers[i]);
        buffers[i]->role == BufferRole::output &&
        buffers[static_cast<size_t>(same - pointers.begin())]->role == BufferRole::input)
      arguments[i] = {{}, static_cast<size_t>(same - pointers.begin())};
  REQUIRE(error_text(interpret(kernel, arguments, symbols)) == "");
  for (size_t i = 0; i < buffers.size(); ++i)
    if (const Bytes& made = arguments[arguments[i].place.value_or(i)].bytes;
        buffers[i]->role == BufferRole::output)
      std::memcpy(pointers[i], made.data(), made.size());
}

inline Bytes packed_weights(const Program& program) {
  Bytes weights(program.weight_bytes);
  for (const WeightPiece& piece : program.weights) {
    std::byte* to = weights.data() + piece.offset;
    Bytes source(piece.source.bytes.begin(), piece.source.bytes.end());
    if (piece.pack) run_kernel(*piece.pack, {source.data(), to});
    else std::memcpy(to, source.data(), std::min(source.size(), static_cast<size_t>(piece.size)));
  }
  return weights;
}

class Machine {
 public:
  int transfers = 0, in_place = 0, launches = 0;

  explicit Machine(const Program& program) : program_(program) {
    const Bytes all = packed_weights(program);
    weights_.push_back(all);
    add_arena(program.arena_bytes);
    for (const DeviceProgram& device : program.devices) {
      add_arena(device.arena_bytes);
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(device.weights_offset);
      weights_.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(device.weight_bytes));
    }
    told_.resize(arenas_.size());
    sent_.resize(arenas_.size());
  }

  void run(std::vector<Bytes>& inputs, std::vector<Bytes>& outputs) {
    Frame frame;
    for (Bytes& bytes : inputs) frame.inputs.push_back(bytes.data());
    for (Bytes& bytes : outputs) frame.outputs.push_back(bytes.data());
    for (Bytes& bytes : arenas_) frame.arenas.push_back(bytes.data());
    run_calls(program_, frame);
    for (size_t device = 0; device < told_.size(); ++device) wait(device);
  }

 private:
  struct Frame {
    std::vector<std::byte*> inputs, outputs;
    std::vector<std::byte*> arenas;  // by place, with the processor's first
    Symbols symbols = {};
    bool in_region = false;
  };

  void add_arena(const Expr& bytes) {
    arenas_.emplace_back(static_cast<size_t>(as_const(bytes).value()), std::byte{0xff});
  }

  static int64_t number(const Expr& e, const Frame& frame) {
    return eval_int(e, [&](std::string_view name) { return frame.symbols.at(std::string(name)); });
  }

  std::byte* at(const Operand& operand, int device, const Frame& frame) {
    const int64_t offset = number(operand.offset, frame);
    const auto index = static_cast<size_t>(operand.index), place = static_cast<size_t>(device);
    if (operand.place == Place::input || operand.place == Place::output)
      REQUIRE((device == 0 || frame.in_region));
    switch (operand.place) {
      case Place::input: return frame.inputs[index] + offset;
      case Place::output: return frame.outputs[index] + offset;
      case Place::arena: return frame.arenas[place] + offset;
      case Place::weights: return weights_[place].data() + offset;
      case Place::growable: break;  // data-dependent sizes, which these graphs lack
    }
    TW_UNREACHABLE("bad place");
  }

  void wait(size_t device) {
    for (const std::function<void()>& step : std::exchange(told_[device], {})) step();
    sent_[device] = false;
  }

  void run_calls(const Program& calls, const Frame& frame) {
    for (const KernelCall& call : calls.calls) {
      if (call.function) run_regions(call, frame);
      else run_call(call, frame);
    }
    if (!frame.in_region) return;
    for (const KernelCall& call : calls.calls)  // the data it sent may change from here on
      if (call.is_transfer() && call.device && sent_[static_cast<size_t>(call.device)])
        wait(static_cast<size_t>(call.device));
  }

  void run_call(const KernelCall& call, const Frame& frame) {
    std::vector<std::byte*> pointers;
    for (const Operand& operand : call.arguments)
      pointers.push_back(at(operand, pointers.empty() ? call.from : call.device, frame));
    in_place += !call.is_transfer() && std::find(pointers.begin(), pointers.end() - 1,
                                                 pointers.back()) != pointers.end() - 1;
    if (call.is_transfer()) REQUIRE((call.from == 0 || call.device == 0));
    transfers += call.is_transfer();
    launches += call.is_launch();
    const Kernel& kernel = program_.kernels[static_cast<size_t>(call.kernel)];
    Symbols symbols;
    for (size_t s = 0; s < kernel.symbols.size(); ++s)
      symbols[kernel.symbols[s]] = number(call.symbols[s], frame);
    const auto doer = static_cast<size_t>(std::max(call.device, call.from));
    told_[doer].emplace_back(
        [&kernel, pointers, symbols] { run_kernel(kernel, pointers, symbols); });
    if (call.is_transfer() && call.device) sent_[doer] = true;
    if (call.device == 0) wait(doer);
  }

  std::vector<std::byte*> operands(const KernelCall& call,
                                   const std::vector<ExternCall::View>& views, size_t first,
                                   size_t count, const Frame& frame) {
    std::vector<std::byte*> out;
    for (size_t i = first; i < first + count; ++i)
      out.push_back(
          at(call.arguments[static_cast<size_t>(views[i].argument)], views[i].device, frame));
    return out;
  }

  void run_regions(const KernelCall& call, const Frame& frame) {
    const ExternCall& f = *call.function;
    Frame inner = frame;
    inner.in_region = true;
    inner.arenas[0] = frame.arenas[0] + number(call.workspace, frame);
    for (size_t d = 1; d < inner.arenas.size(); ++d)
      inner.arenas[d] = frame.arenas[d] + number(f.region->workspaces[d - 1], frame);
    if (f.region->loop) return run_loop(call, inner, frame);
    size_t first = 1, branch = 0;
    if (*operands(call, f.inputs, 0, 1, frame)[0] == std::byte{0}) {
      first += program_.regions[static_cast<size_t>(f.region->regions[0])].inputs.size();
      branch = 1;
    }
    const Program& region = program_.regions[static_cast<size_t>(f.region->regions[branch])];
    inner.inputs = operands(call, f.inputs, first, region.inputs.size(), frame);
    inner.outputs = operands(call, f.outputs, 0, f.outputs.size(), frame);
    run_calls(region, inner);
  }

  // Runs a loop as runtime/control.c does.
  void run_loop(const KernelCall& call, Frame& inner, const Frame& frame) {
    const ExternCall& f = *call.function;
    const RegionCall& loop = *f.region;
    const Program& body = program_.regions[static_cast<size_t>(loop.regions[0])];
    const size_t lead = loop.conditional ? 1 : 0, carried = static_cast<size_t>(loop.carried),
                 rest = carried + static_cast<size_t>(loop.sliced);
    inner.inputs = operands(call, f.inputs, lead, body.inputs.size(), frame);
    const std::vector<std::byte*> results = operands(call, f.outputs, 0, f.outputs.size(), frame);
    inner.outputs.assign(lead, inner.arenas[0] + number(loop.condition, frame));
    inner.outputs.insert(inner.outputs.end(), results.begin(),
                         results.end() - static_cast<std::ptrdiff_t>(lead));
    const std::byte* going = lead ? operands(call, f.inputs, 0, 1, frame)[0] : nullptr;
    const int64_t trip = loop.trip.defined() ? number(loop.trip, frame) : INT64_MAX;
    int64_t made = 0;
    for (; made < trip && (!going || *going != std::byte{0}); ++made) {
      inner.symbols[loop.iteration] = made + 1;
      run_calls(body, inner);
      if (lead) going = inner.outputs[0];
      for (size_t i = 0; i < carried; ++i) {
        inner.inputs[i] = inner.outputs[lead + i];
        const auto device = static_cast<size_t>(f.outputs[i].device);
        inner.outputs[lead + i] = inner.inputs[i] == results[i]
                                      ? inner.arenas[device] + number(loop.spare[i], frame)
                                      : results[i];
      }
      for (size_t i = carried; i < rest; ++i) inner.inputs[i] += number(loop.bytes[i], frame);
      for (size_t i = carried; lead + i < inner.outputs.size(); ++i)
        inner.outputs[lead + i] += number(loop.bytes[rest + i - carried], frame);
    }
    for (size_t i = 0; i < carried; ++i) {
      const auto bytes = static_cast<size_t>(number(loop.bytes[i] + loop.growth[i] * made, frame));
      if (inner.inputs[i] == results[i]) continue;
      const auto device = static_cast<size_t>(f.outputs[i].device);
      told_[device].emplace_back(
          [to = results[i], from = inner.inputs[i], bytes] { std::memcpy(to, from, bytes); });
      if (device == 0) wait(0);
    }
    if (lead) std::memcpy(results.back(), &made, sizeof made);
  }

  const Program& program_;
  std::vector<Bytes> arenas_, weights_;  // by place; a device's weights begin at 0
  std::vector<std::vector<std::function<void()>>> told_;
  std::vector<bool> sent_;  // by device: data was sent since the last wait
};

}  // namespace tw::test
