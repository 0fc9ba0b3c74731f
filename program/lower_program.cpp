#include "program/lower_program.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "ir/graph/externs.h"
#include "ir/graph/index_checks.h"
#include "ir/graph/symbol_sources.h"
#include "passes/storage.h"
#include "program/shared_parts.h"
#include "program/size_conditions.h"
#include "program/sizes.h"

namespace tw {
namespace {

Operand shifted(Operand operand, const Expr& bytes) {
  operand.offset = simplify_dim(operand.offset + bytes);
  return operand;
}

Kernel copy_kernel(DType dtype, const Expr& count) {
  Kernel copy;
  copy.name = "copy";
  visit(count, [&](const Expr& e) {
    const std::string* name = var_name(e);
    if (name && !std::ranges::count(copy.symbols, *name)) copy.symbols.push_back(*name);
  });
  copy.buffers = {{"x", dtype, {count}, BufferRole::input, "global"},
                  {"y", dtype, {count}, BufferRole::output, "global"}};
  copy.body = make_loop("i0", count,
                        make_store({.label = "y",
                                    .buffer = BufferId{1},
                                    .indices = {var("i0")},
                                    .value = load(BufferId{0}, dtype, {var("i0")})}));
  return copy;
}

// The places where a region exchanges values with the graph around it.
struct RegionSide {
  size_t carried = 0, sliced = 0;  // a loop body's inputs begin with these
  std::vector<int> carried_on;     // devices of the carried values
  std::vector<int> outputs_on;     // devices where the graph's outputs are wanted
};

RegionSide side_of(const Graph& region, const Node& node, const Placement& placement) {
  RegionSide side;
  size_t lead = 0;  // outputs of the graph in front of the results
  const std::vector<ValueId> results = node.outputs();
  const auto home = [&](size_t result) {
    const auto found = placement.results.find(results[result].index);
    return found == placement.results.end() ? 0 : found->second;
  };
  if (const auto* loop = std::get_if<op::Loop>(&node.attrs)) {
    lead = loop->conditional ? 1 : 0;
    side.carried = static_cast<size_t>(loop->carried);
    side.sliced = static_cast<size_t>(loop->sliced);
    for (size_t i = 0; i < side.carried; ++i) side.carried_on.push_back(home(i));
  }
  for (size_t i = 0; i < region.outputs().size(); ++i)
    side.outputs_on.push_back(i < lead ? 0 : home(i - lead));
  return side;
}

class GraphLowering {
 public:
  GraphLowering(const Graph& graph, const RegionSide* side, SharedParts& shared)
      : graph_(graph),
        groups_(shared.fused_of(graph).groups),
        placement_(shared.placement_of(graph)),
        side_(side),
        shared_(shared),
        storage_(graph_, groups_),
        conditions_(graph_, out_.symbols, side != nullptr, out_.program) {
    out_.graph = &graph;
    out_.in_region = side != nullptr;
    out_.symbols = ranges_of(graph_);
  }

  Expected<LoweredCalls> run() {
    describe();
    for (size_t g = 0; g < groups_.size(); ++g)
      if (!storage_.in_place(groups_[g]))
        for (ValueId v : graph_.node(groups_[g].nodes.back()).outputs())
          made_on_[storage_.of(v).root.index] = lies_on(v, g);
    place_inputs();
    place_outputs();
    for (const ValueId input : graph_.inputs()) read_symbols(input);
    for (const DataSymbol& symbol : graph_.data_symbols)
      if (graph_.is_constant(symbol.value)) read_symbols(symbol.value);
    for (size_t g = 0; g < groups_.size(); ++g) TW_TRY(add(groups_[g], device_of(g)));
    copy_outputs();
    if (side_) sort_inputs();
    return std::move(out_);
  }

 private:
  int next_call() const { return static_cast<int>(out_.program.calls.size()); }
  int device_of(size_t group) const {
    return placement_.devices.empty() ? 0 : placement_.devices[group];
  }
  // The device whose memory has a result of the group.
  int lies_on(ValueId v, size_t group) const {
    const auto result = placement_.results.find(v.index);
    return result == placement_.results.end() ? device_of(group) : result->second;
  }

  void describe() {
    Program& program = out_.program;
    program.name = graph_.name;
    program.symbols = graph_.symbols;
    program.limits = graph_.limits;
    require_steps(graph_, program);
    for (const DataSymbol& symbol : graph_.data_symbols)
      program.data_symbols.push_back(symbol.name);
    is_read_.resize(graph_.data_symbols.size());
    for (size_t s = 0; s < graph_.data_symbols.size(); ++s)
      symbols_of_.emplace(graph_.data_symbols[s].value, s);
    program.devices.resize(shared_.device_count());
    for (const Graph::Output& o : graph_.outputs())
      program.outputs.push_back(
          {o.name, graph_.value(o.value).type.dtype, graph_.value(o.value).type.shape});
  }

  // A region gets a loop's carried values on the device where they lie. Its other inputs are placed
  // when a call first asks for them, on any device (bring).
  void place_inputs() {
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
      const ValueId input = graph_.inputs()[i];
      valid_on_[input.index] = {};
      if (!side_) add_input(i, 0);
      else if (i < side_->carried) add_input(i, side_->carried_on[i]);
      else input_numbers_[input.index] = i;
    }
  }

  void add_input(size_t i, int device) {
    const ValueId v = graph_.inputs()[i];
    place_[{device, v.index}] = {Place::input, static_cast<int>(out_.inputs.size()), Expr(0)};
    valid_on_[v.index].insert(device);
    out_.inputs.push_back({i, device});
    const TensorType& type = graph_.value(v).type;
    out_.program.inputs.push_back({graph_.value(v).name, type.dtype, type.shape});
  }

  // True if the graph around the region can give it the input on the device.
  bool is_given_on(ValueId input, int device) const {
    const auto number = input_numbers_.find(input.index);
    if (number == input_numbers_.end()) return false;
    return number->second >= side_->carried + side_->sliced || device == 0 ||
           finds_rows(shared_.target_of(device), byte_count(graph_.value(input).type));
  }

  // Sorts the region's inputs into the order of the graph's inputs.
  void sort_inputs() {
    std::vector<size_t> order(out_.inputs.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::sort(order, {}, [&](size_t i) {
      return std::pair(out_.inputs[i].input, out_.inputs[i].device);
    });
    std::vector<int> now(order.size());
    std::vector<RegionInput> inputs;
    std::vector<TensorSpec> specs;
    for (const size_t i : order) {
      now[i] = static_cast<int>(inputs.size());
      inputs.push_back(out_.inputs[i]);
      specs.push_back(out_.program.inputs[i]);
    }
    out_.inputs = std::move(inputs);
    out_.program.inputs = std::move(specs);
    const auto renumber = [&](Operand& operand) {
      if (operand.place == Place::input) operand.index = now[static_cast<size_t>(operand.index)];
    };
    for (KernelCall& call : out_.program.calls) std::ranges::for_each(call.arguments, renumber);
    for (SizeStep& step : out_.program.steps) renumber(step.at);
  }

  int output_on(size_t i) const { return side_ ? side_->outputs_on[i] : 0; }

  // If a kernel makes the value of an output, it writes into the output's buffer itself. Further
  // outputs with the same value get copies.
  void place_outputs() {
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      auto [v, offset] = storage_.of(graph_.outputs()[i].value);
      const int device = output_on(i);
      bool made = graph_.def(v) != nullptr && made_on(v) == device && is_const(offset, 0) &&
                  same_bytes(v, graph_.outputs()[i].value);
      if (made && !place_.count({device, v.index}))
        place_[{device, v.index}] = {Place::output, static_cast<int>(i), Expr(0)};
      else copies_.push_back(i);
    }
  }

  bool same_bytes(ValueId a, ValueId b) const {
    return is_const(
        simplify_dim(byte_count(graph_.value(a).type) - byte_count(graph_.value(b).type)), 0);
  }

  // The device whose kernels make the value; the processor if no kernel makes it.
  int made_on(ValueId root) const {
    auto found = made_on_.find(root.index);
    return found == made_on_.end() ? 0 : found->second;
  }

  Error add(const Group& group, int device) {
    for (const NodeId id : group.nodes) {
      TW_TRY(conditions_.add(graph_.node(id)));
      look_at_indices(graph_.node(id));
    }
    if (is_extern(graph_, group)) TW_TRY(add_extern(graph_.node(group.anchor)));
    else if (storage_.in_place(group)) add_copies(group);
    else TW_TRY(add_kernel(group, device));
    for (const NodeId id : group.nodes)
      for (const ValueId made : graph_.node(id).outputs()) read_symbols(made);
    return Error::success();
  }

  // Lets the processor check the indices that the node reads by: kernels clamp them.
  void look_at_indices(const Node& node) {
    for (const IndexCheck& check : open_indices(graph_, node)) {
      const auto [least, most] = check.range;
      const std::string wanted = check.what +
                                 (least.defined() ? to_string(least) + to_string(most) : "");
      if (!looked_at_.emplace(check.source.index, wanted).second) continue;
      bring(check.source, 0);
      const TensorType& type = graph_.value(check.source).type;
      SizeStep step{.kind = SizeStep::Kind::within,
                    .before = out_.program.calls.size(),
                    .at = tensor(check.source, 0)};
      step.dtype = type.dtype;
      step.least = least;
      step.bound = most;
      step.bytes = byte_count(type);
      step.what = node_title(graph_, node) + ": " + check.what;
      out_.program.steps.push_back(std::move(step));
    }
  }

  // Reads the data symbols that come from the value, after the call that makes it.
  void read_symbols(ValueId v) {
    const auto [first, end] = symbols_of_.equal_range(v);
    for (auto at = first; at != end; ++at) {
      const size_t s = at->second;
      const DataSymbol& symbol = graph_.data_symbols[s];
      if (is_read_[s]) continue;
      is_read_[s] = true;
      const Value& value = graph_.value(v);
      TW_CHECK(value.type.layout.plain(), "symbol {0} is read from blocks", symbol.name);
      bring(v, 0);
      SizeStep step{
          .kind = SizeStep::Kind::read,
          .before = out_.program.calls.size(),
          .at = shifted(tensor(v, 0), Expr(symbol.element * dtype_bytes(value.type.dtype)))};
      step.symbol = static_cast<int>(s);
      step.dtype = value.type.dtype;
      step.bound = symbol.bound;
      step.equals = symbol.equals;
      if (symbol.equals.defined())
        out_.program.needs.push_back(
            symbol.needed_by + " needs " +
            to_string(interface_terms(eq(var(symbol.name), symbol.equals))));
      step.what = element_title(graph_, symbol);
      out_.program.steps.push_back(std::move(step));
    }
  }

  Error add_kernel(const Group& group, int device) {
    TW_ASSIGN(LoweredGroup lowered, lower_group(graph_, group, shared_.target_of(device)));
    const std::string stem = lowered.kernel.name;
    const std::vector<std::string> symbols = lowered.kernel.symbols;
    const std::vector<LoweredArgument> arguments = lowered.arguments;
    const int kernel = shared_.kernel({std::move(lowered), device, "", &graph_, &group}, stem);
    for (size_t i = 0; i < arguments.size(); ++i)
      if (!arguments[i].constant && shared_.buffer(kernel, i).role != BufferRole::output)
        bring(arguments[i].value, device);
    KernelCall call;
    call.kernel = kernel;
    call.name = group_name(graph_, group);
    call.device = call.from = device;
    for (const std::string& symbol : symbols) call.symbols.push_back(var(symbol));
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Buffer& buffer = shared_.buffer(kernel, i);
      if (arguments[i].constant)
        call.arguments.push_back(shared_.weight(
            arguments[i], buffer, device,
            arguments[i].value.valid() ? graph_.value(arguments[i].value).name : buffer.name));
      else call.arguments.push_back(tensor(arguments[i].value, device));
      if (buffer.role == BufferRole::output) written(arguments[i].value, device);
    }
    add_workspace(device);
    out_.program.calls.push_back(std::move(call));
    return Error::success();
  }

  // Adds a call of a function of the runtime library, or one that runs regions; both run on the
  // processor.
  Error add_extern(const Node& node) {
    if (!regions_of(node.attrs).empty()) return add_regions(node);
    for (ValueId v : node.inputs)
      if (v.valid()) bring(v, 0);
    KernelCall call;
    call.kernel = -1;
    call.name = node.name.empty() ? graph_.value(node.output).name : node.name;
    const auto& op = std::get<op::Extern>(node.attrs);
    const ExternInfo& info = extern_info(op.function);
    ExternCall function;
    function.function = info.name;
    function.what = node_title(graph_, node);
    function.ints = op.ints;
    function.reals = op.reals;
    function.in_place = info.in_place;
    for (ValueId v : node.inputs) function.inputs.push_back(view(v, 0, call));
    add_call(std::move(call), std::move(function), node);
    return Error::success();
  }

  void add_call(KernelCall call, ExternCall function, const Node& node) {
    for (ValueId v : node.outputs()) {
      const auto result = placement_.results.find(v.index);
      const int device = result == placement_.results.end() ? 0 : result->second;
      function.outputs.push_back(view(v, device, call));
      written(v, device);
    }
    call.function = std::make_shared<const ExternCall>(std::move(function));
    out_.program.calls.push_back(std::move(call));
  }

  // Adds an operand of an external function. Such operands are dense: a part of another value is a
  // contiguous stretch of it.
  ExternCall::View view(ValueId v, int device, KernelCall& call) {
    if (!v.valid()) return {-1, DType::f32, {}};
    const TensorType& type = graph_.value(v).type;
    TW_CHECK(type.layout.plain(), "'{0}' of {1} has the layout of {2}", graph_.value(v).name,
             call.name, to_string(type));
    call.arguments.push_back(in_arena(v, device));
    return {static_cast<int>(call.arguments.size()) - 1, type.dtype, type.shape, device};
  }

  void bring_into_region(ValueId v, int device) {
    bring(v, device);
    if (device == 0 || !graph_.is_constant(v) || constants_.count({device, v.index})) return;
    const Operand to{Place::arena, static_cast<int>(out_.buffers.size()), Expr(0)};
    add_buffer(byte_count(graph_.value(v).type), device);
    add_copy(v, to, graph_.value(v).name, device, device, Copy::by_driver);
    constants_.emplace(std::pair(device, v.index), to);
  }

  // The operand by which the next call finds the value. A device's constants are copied to its
  // arena, as regions know no other memory of the device.
  Operand in_arena(ValueId v, int device) {
    if (device == 0 || !graph_.is_constant(v)) return tensor(v, device);
    const Operand& copied = constants_.at({device, v.index});
    out_.buffers[static_cast<size_t>(copied.index)].lifetime.last = next_call();
    return copied;
  }

  Error add_regions(const Node& node) {
    LoweredRegions made{&node, 0, {}, {}};
    std::vector<std::pair<ValueId, int>> given;  // values that the call reads, and their devices
    size_t first = 0;                            // the region's first among the node's inputs
    const auto* loop = std::get_if<op::Loop>(&node.attrs);
    if (!loop || loop->conditional) given.emplace_back(node.inputs[first++], 0);
    for (const Graph* region : regions_of(node.attrs)) {
      const RegionSide side = side_of(*region, node, placement_);
      GraphLowering inner(*region, &side, shared_);
      TW_ASSIGN(LoweredCalls calls, inner.run());
      for (const RegionInput& input : calls.inputs)
        given.emplace_back(node.inputs[first + input.input], input.device);
      first += region->inputs().size();
      add_needs_of_region(calls.program.needs, graph_, node, out_.program.needs);
      made.inputs.push_back(calls.inputs);
      made.regions.push_back(shared_.add_region(std::move(calls)));
    }
    for (const auto& [v, device] : given) bring_into_region(v, device);
    made.call = out_.program.calls.size();
    out_.regions.push_back(std::move(made));
    for (size_t device = 0; device <= shared_.device_count(); ++device)
      add_workspace(static_cast<int>(device));
    KernelCall call;
    call.kernel = -1;
    call.name = node.name.empty() ? graph_.value(node.output).name : node.name;
    ExternCall function;
    function.function = op_info(node.attrs).name;
    for (const auto& [v, device] : given) function.inputs.push_back(view(v, device, call));
    add_call(std::move(call), std::move(function), node);
    return Error::success();
  }

  void add_copies(const Group& group) {
    for (const PartCopy& copy : storage_.copies(group)) {
      const int device = made_on(storage_.of(copy.into).root);
      bring(copy.part, device);
      Operand to = shifted(tensor(copy.into, device), copy.offset);
      add_copy(copy.part, to, graph_.value(copy.part).name, device, device,
               side_ ? Copy::by_driver : Copy::by_kernel);
      written(copy.into, device);
    }
  }

  // Copies outputs that no kernel writes in place: inputs, constants, parts of a value, and values
  // that another output shows already.
  void copy_outputs() {
    for (size_t i : copies_) {
      const ValueId v = graph_.outputs()[i].value;
      const Operand to{Place::output, static_cast<int>(i), Expr(0)};
      const int device = output_on(i);
      grow_output(to, byte_count(graph_.value(v).type));
      add_copy(v, to, graph_.outputs()[i].name, device, nearest(v, device), Copy::by_driver);
    }
  }

  // The device to copy the value from: `device` itself if it has the value, else one from which a
  // transfer is possible. Two devices exchange values through the processor's memory.
  int nearest(ValueId v, int device) {
    const ValueId root = storage_.of(v).root;
    if (graph_.is_constant(root)) return device;
    const auto found = valid_on_.find(root.index);
    const std::set<int> valid = found == valid_on_.end() ? std::set<int>{0} : found->second;
    if (valid.count(device)) return device;
    if (input_numbers_.count(root.index) && is_given_on(root, device)) {
      bring(root, device);
      return device;
    }
    if (device == 0) return valid.empty() ? 0 : *valid.begin();
    bring(root, 0);
    return 0;
  }

  // How a device copies within its memory. A kernel can be recorded, and a driver copies between
  // any places.
  enum class Copy : uint8_t { by_kernel, by_driver };

  // Adds a copy within the memory of `device`, or a transfer from `source`.
  void add_copy(ValueId from, const Operand& to, const std::string& name, int device, int source,
                Copy how) {
    const TensorType& type = graph_.value(from).type;
    const Kernel copy = copy_kernel(type.dtype,
                                    simplify(element_count(physical_shape(type)), out_.symbols));
    KernelCall call;
    const Lowered<ElementwiseStages> lowered{{copy, {}}, {}};
    call.moves = source == device && device != 0 && how == Copy::by_driver;
    call.kernel = shared_.kernel({lowered, source == device && !call.moves ? device : 0}, "copy");
    call.name = name;
    call.device = device;
    call.from = source;
    for (const std::string& symbol : copy.symbols) call.symbols.push_back(var(symbol));
    call.arguments = {tensor(from, call.from), to};
    out_.program.calls.push_back(std::move(call));
  }

  // From the next call on, only this device has the value's newest bytes.
  void written(ValueId v, int device) { valid_on_[storage_.of(v).root.index] = {device}; }

  // Makes the device have the value's bytes before the next call. Two devices exchange them through
  // the processor's memory.
  void bring(ValueId v, int device) {
    const ValueId root = storage_.of(v).root;
    if (graph_.is_constant(root)) return;
    std::set<int>& valid = valid_on_.try_emplace(root.index, std::set<int>{0}).first->second;
    if (valid.count(device)) return;
    if (is_given_on(root, device)) return add_input(input_numbers_.at(root.index), device);
    if (device != 0) bring(root, 0);
    const int from = *valid.begin();
    add_copy(root, tensor(root, device), graph_.value(root).name, device, from, Copy::by_driver);
    valid.insert(device);
  }

  // The operand by which the next call finds the value on the device, or makes it there.
  Operand tensor(ValueId v, int device) {
    auto [r, offset] = storage_.of(v);
    const Value& value = graph_.value(r);
    if (graph_.is_constant(r))
      return shared_.weight(
          {r, true, *value.constant, nullptr},
          {value.name, value.type.dtype, value.type.shape, BufferRole::constant, "global"}, device,
          value.name);
    const Expr bytes = byte_count(value.type);
    auto found = place_.find({device, r.index});
    if (found == place_.end()) {
      found = place_
                  .emplace(std::pair(device, r.index),
                           Operand{Place::arena, static_cast<int>(out_.buffers.size()), Expr(0)})
                  .first;
      add_buffer(bytes, device);
    }
    if (found->second.place == Place::arena)
      out_.buffers[static_cast<size_t>(found->second.index)].lifetime.last = next_call();
    if (found->second.place == Place::output) grow_output(found->second, bytes);
    return shifted(found->second, offset);
  }

  // Adds the step that allocates an output of unknown size before the first call that writes it.
  void grow_output(const Operand& at, const Expr& bytes) {
    if (out_.in_region || !is_data_dependent(bytes) || !has_grown_.insert(at.index).second) return;
    SizeStep step{.kind = SizeStep::Kind::grow,
                  .before = out_.program.calls.size(),
                  .at = {at.place, at.index, Expr(0)}};
    step.bytes = bytes;
    out_.program.steps.push_back(std::move(step));
  }

  // Adds a buffer that lives during the next call.
  void add_buffer(const Expr& bytes, int device) {
    out_.buffers.push_back({{bytes, next_call(), next_call()}, device});
  }
  void add_workspace(int device) {
    out_.workspaces.emplace_back(out_.program.calls.size(), out_.buffers.size());
    add_buffer(Expr(), device);
  }

  const Graph& graph_;
  const std::vector<Group>& groups_;
  const Placement& placement_;
  const RegionSide* side_;  // null for the model's own graph
  SharedParts& shared_;
  Storage storage_;
  LoweredCalls out_;
  SizeConditions conditions_;
  std::map<std::pair<int, int32_t>, Operand> place_;  // by device and value
  std::map<int32_t, int> made_on_;
  // Devices that have a value's newest bytes; an absent value is an input, on the processor
  std::map<int32_t, std::set<int>> valid_on_;
  // By value, for a region: the number of an input that is given on any device that asks for it
  std::map<int32_t, size_t> input_numbers_;
  // By device and value: copies of constants in the device's arena
  std::map<std::pair<int, int32_t>, Operand> constants_;
  std::vector<size_t> copies_;
  // By value: the numbers of the data symbols that are read from it
  std::multimap<ValueId, size_t> symbols_of_;
  std::vector<bool> is_read_;                            // by data symbol
  std::set<int> has_grown_;                              // outputs
  std::set<std::pair<int32_t, std::string>> looked_at_;  // checked indices, with their limits
};

void add_regions_within(const Graph& graph, std::vector<const Graph*>& regions) {
  for (const NodeId id : graph.order())
    for (const Graph* region : regions_of(graph.node(id).attrs)) {
      if (std::ranges::count(regions, region)) continue;
      regions.push_back(region);
      add_regions_within(*region, regions);
    }
}

}  // namespace

std::vector<const Graph*> regions_within(const Graph& graph) {
  std::vector<const Graph*> regions;
  add_regions_within(graph, regions);
  return regions;
}

Expected<LoweredProgram> lower_program(const std::vector<FusedGraph>& fused,
                                       const std::vector<Placement>& placements,
                                       const Target& target) {
  LoweredProgram lowered;
  SharedParts shared(fused, placements, target, lowered);
  TW_ASSIGN(lowered.main, GraphLowering(*fused.front().graph, nullptr, shared).run());
  return lowered;
}

}  // namespace tw
