#include "program/build_program.h"

#include <map>
#include <set>

#include "ir/graph/externs.h"
#include "ir/graph/index_checks.h"
#include "passes/fuse_groups.h"
#include "passes/storage.h"
#include "program/in_place.h"
#include "program/region_calls.h"
#include "program/sizes.h"

namespace tw {
namespace {

class ProgramBuilder {
 public:
  ProgramBuilder(const Graph& graph, const std::vector<Group>& groups, const Target& target,
                 const ProgramOptions& options)
      : graph_(graph),
        groups_(groups),
        target_(target),
        options_(options),
        storage_(graph, groups) {
    for (const std::string& symbol : graph.all_symbols()) symbols_[symbol] = symbol_range(symbol);
    for (const DataSymbol& symbol : graph.data_symbols) symbols_[symbol.name].max = symbol.bound;
    for (const auto& [symbol, limits] : graph.limits)
      symbols_[symbol] = {Expr(limits.least), limits.most < INT64_MAX ? Expr(limits.most) : Expr()};
  }

  Expected<Program> run() {
    describe();
    for (size_t g = 0; g < groups_.size(); ++g)
      if (!storage_.in_place(groups_[g]))
        for (ValueId v : graph_.node(groups_[g].nodes.back()).outputs())
          made_on_[storage_.of(v).root.index] = device_of(g);
    place_outputs();
    for (const ValueId input : graph_.inputs()) TW_TRY(read_symbols(input));
    for (const DataSymbol& symbol : graph_.data_symbols)
      if (graph_.is_constant(symbol.value)) TW_TRY(read_symbols(symbol.value));
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (const NodeId id : groups_[g].nodes) {
        TW_TRY(check_sizes(graph_.node(id)));
        if (device_of(g) == 0) TW_TRY(look_at_indices(graph_.node(id)));
      }
      TW_TRY(is_extern(graph_, groups_[g])   ? add_extern(graph_.node(groups_[g].anchor))
             : storage_.in_place(groups_[g]) ? add_copies(groups_[g])
                                             : add_group(groups_[g], device_of(g)));
      for (const NodeId id : groups_[g].nodes)
        for (const ValueId made : graph_.node(id).outputs()) TW_TRY(read_symbols(made));
    }
    if (Error error = copy_outputs()) return error;
    plan();
    return std::move(program_);
  }

 private:
  int next_call() const { return static_cast<int>(program_.calls.size()); }
  int device_of(size_t group) const {
    return options_.devices.empty() ? 0 : options_.devices[group];
  }
  const Target& target_of(int device) const {
    return device ? target_.devices[static_cast<size_t>(device) - 1] : target_;
  }

  // The device whose kernels make the value; the processor for what no kernel makes.
  int made_on(ValueId root) const {
    auto found = made_on_.find(root.index);
    return found == made_on_.end() ? 0 : found->second;
  }

  Error add_copies(const Group& group) {
    for (const PartCopy& copy : storage_.copies(group)) {
      const int device = made_on(storage_.of(copy.into).root);
      TW_TRY(bring(copy.part, device));
      Operand to = shifted(tensor(copy.into, device), copy.offset);
      TW_TRY(add_copy(copy.part, to, graph_.value(copy.part).name, device));
      written(copy.into, device);
    }
    return Error::success();
  }

  // Behind the call that makes the value.
  Error read_symbols(ValueId v) {
    const auto [first, end] = symbols_of_.equal_range(v);
    for (auto at = first; at != end; ++at) {
      const size_t s = at->second;
      const DataSymbol& symbol = graph_.data_symbols[s];
      if (is_read_[s]) continue;
      is_read_[s] = true;
      const Value& value = graph_.value(v);
      TW_CHECK(value.type.layout.plain(), "symbol {0} is read from blocks", symbol.name);
      TW_TRY(bring(v, 0));
      SizeStep step{
          .kind = SizeStep::Kind::read,
          .before = program_.calls.size(),
          .at = shifted(tensor(v, 0), Expr(symbol.element * dtype_bytes(value.type.dtype)))};
      step.symbol = static_cast<int>(s);
      step.dtype = value.type.dtype;
      step.bound = symbol.bound;
      step.equals = symbol.equals;
      step.what = "element " + std::to_string(symbol.element) + " of '" + value.name + "'";
      program_.steps.push_back(std::move(step));
    }
    return Error::success();
  }

  std::string title(const Node& node) const {
    return (node.name.empty() ? graph_.value(node.output).name : node.name) + " (" +
           (node.source.empty() ? op_info(node.attrs).name : node.source) + ")";
  }

  // What nobody can show before the sizes are known.
  Error check_sizes(const Node& node) {
    for (const Expr& condition : conditions_of(graph_, node))
      TW_TRY(need(condition, node, "needs "));
    for (const Expr& condition : index_conditions(graph_, node))
      TW_TRY(need(condition, node, "has constant indices, which need "));
    for (const ValueId made : node.outputs()) need_countable(made);
    return Error::success();
  }

  // Of a condition that holds for some sizes: sizes of the inputs are looked at before the run,
  // others in front of the call. A region's are a matter of running it.
  Error need(const Expr& condition, const Node& node, const char* text) {
    if (!needed_.insert(to_string(condition)).second) return Error::success();
    const Expr open = simplify(condition, symbols_);
    if (is_const(open, 1)) return Error::success();
    const std::string what = title(node) + " " + text + to_string(interface_terms(open));
    if (is_const(open, 0) && !in_region_)
      return make_error(DiagCode::invalid_model, "{0} {1}{2}", title(node), text,
                        to_string(interface_terms(condition)));
    add_condition(open, what);
    return Error::success();
  }

  // A value without elements is looped over along its other extents: no more than memory that can
  // be addressed would have.
  void need_walkable(ValueId value) {
    constexpr int64_t kMostBytes = int64_t{1} << 47;
    const TensorType& type = graph_.value(value).type;
    if (as_const(byte_count(type))) return;
    Expr bytes = static_cast<int64_t>(dtype_bytes(type.dtype));
    bool empty = false;
    for (const Expr& extent : type.shape) {
      const Expr some = simplify(max(extent, Expr(1)), symbols_);
      empty |= !is_const(simplify(le(Expr(1), extent), symbols_), 1);
      bytes = bytes * some;
    }
    if (empty && type.shape.size() > 1 && needed_.insert("walk " + to_string(bytes)).second)
      add_condition(le(bytes, Expr(kMostBytes)),
                    "'" + graph_.value(value).name + "' has an extent that is too large");
  }

  // Numbers inside of kernels then have 64 bits too. Of multiples of one size the largest stands
  // for all.
  void need_countable(ValueId value) {
    need_walkable(value);
    const Expr bytes = byte_count(graph_.value(value).type);
    if (as_const(bytes) || !needed_.insert(to_string(bytes)).second) return;
    const bool product = bytes->kind == ExprKind::binary && bytes->binary == BinaryOp::mul &&
                         as_const(bytes->args[1]);
    const int64_t times = product ? *as_const(bytes->args[1]) : 1;
    const auto [of_size, fresh] = multiples_.try_emplace(
        to_string(product ? bytes->args[0] : bytes), times, program_.conditions.size());
    auto& [most, condition] = of_size->second;
    if (!fresh && times <= most) return;
    most = times;
    SizeCondition own{le(Expr(0), bytes),
                      "'" + graph_.value(value).name + "' has more bytes than can be counted"};
    if (fresh || !known_before_run(bytes)) add_condition(own.holds, own.what);
    else program_.conditions[condition] = std::move(own);
  }

  bool known_before_run(const Expr& e) const {
    return !in_region_ && std::ranges::none_of(graph_.data_symbols, [&](const DataSymbol& s) {
      return uses_var(e, s.name);
    });
  }

  void add_condition(const Expr& holds, const std::string& what) {
    if (known_before_run(holds)) {
      program_.conditions.push_back({holds, what});
      return;
    }
    SizeStep step{.kind = SizeStep::Kind::check, .before = program_.calls.size()};
    step.equals = holds;
    step.what = what;
    program_.steps.push_back(std::move(step));
  }

  // With symbols as the interface calls them.
  static Expr interface_terms(const Expr& e) {
    return rewrite(e, [](const Expr& part) {
      return part->kind == ExprKind::var && interface_name(part->name) != part->name
                 ? var(interface_name(part->name))
                 : Expr();
    });
  }

  // Only the processor does; kernels of devices clamp.
  Error look_at_indices(const Node& node) {
    for (const IndexCheck& check : open_indices(graph_, node)) {
      if (!looked_at_.emplace(check.source.index, to_string(check.extent)).second) continue;
      TW_TRY(bring(check.source, 0));
      const TensorType& type = graph_.value(check.source).type;
      SizeStep step{.kind = SizeStep::Kind::indices,
                    .before = program_.calls.size(),
                    .at = tensor(check.source, 0)};
      step.dtype = type.dtype;
      step.bound = check.extent;
      step.bytes = byte_count(type);
      step.what = title(node);
      program_.steps.push_back(std::move(step));
    }
    return Error::success();
  }

  static Operand shifted(Operand operand, const Expr& bytes) {
    operand.offset = simplify_dim(operand.offset + bytes);
    return operand;
  }

  void describe() {
    program_.name = graph_.name;
    program_.symbols = graph_.symbols;
    program_.limits = graph_.limits;
    for (const DataSymbol& symbol : graph_.data_symbols)
      program_.data_symbols.push_back(symbol.name);
    is_read_.resize(graph_.data_symbols.size());
    for (size_t s = 0; s < graph_.data_symbols.size(); ++s)
      symbols_of_.emplace(graph_.data_symbols[s].value, s);
    program_.devices.resize(target_.devices.size());
    for (ValueId v : graph_.inputs())
      program_.inputs.push_back(
          {graph_.value(v).name, graph_.value(v).type.dtype, graph_.value(v).type.shape});
    for (const Graph::Output& o : graph_.outputs())
      program_.outputs.push_back(
          {o.name, graph_.value(o.value).type.dtype, graph_.value(o.value).type.shape});
  }

  // A value that some kernel makes is made in the output's buffer itself, for the first output that
  // shows it.
  void place_outputs() {
    for (size_t i = 0; i < graph_.inputs().size(); ++i)
      place_[{0, graph_.inputs()[i].index}] = {Place::input, static_cast<int>(i), Expr(0)};
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      auto [v, offset] = storage_.of(graph_.outputs()[i].value);
      bool made = graph_.def(v) != nullptr && made_on(v) == 0 && is_const(offset, 0) &&
                  same_bytes(v, graph_.outputs()[i].value);
      if (made && !place_.count({0, v.index}))
        place_[{0, v.index}] = {Place::output, static_cast<int>(i), Expr(0)};
      else copies_.push_back(i);
    }
  }

  bool same_bytes(ValueId a, ValueId b) const {
    return is_const(
        simplify_dim(byte_count(graph_.value(a).type) - byte_count(graph_.value(b).type)), 0);
  }

  Error add_group(const Group& group, int device) {
    TW_ASSIGN(LoweredGroup lowered, lower_group(graph_, group, target_of(device)));
    lowered.in_region = in_region_;
    TW_ASSIGN(const int kernel, kernel_index(lowered, lowered.kernel.name, device));
    std::string name;
    for (NodeId id : group.nodes) {
      const Node& node = graph_.node(id);
      const std::string& own = node.name.empty() ? graph_.value(node.output).name : node.name;
      if (name.find(own) == std::string::npos) name += (name.empty() ? "" : "+") + own;
    }
    return add_call(kernel, lowered.kernel.symbols, lowered.arguments, name, device);
  }

  // A function of the runtime library or regions, on the processor.
  Error add_extern(const Node& node) {
    for (ValueId v : node.inputs)
      if (v.valid()) TW_TRY(bring(v, 0));
    KernelCall call;
    call.kernel = -1;
    call.name = node.name.empty() ? graph_.value(node.output).name : node.name;
    ExternCall function;
    function.function = op_info(node.attrs).name;
    if (const auto* op = std::get_if<op::Extern>(&node.attrs)) {
      const ExternInfo& info = extern_info(op->function);
      function.function = info.name;
      function.ints = op->ints;
      function.reals = op->reals;
      function.in_place = info.in_place;
    } else {
      TW_ASSIGN(function.region, add_regions(node));
    }
    for (ValueId v : node.inputs) function.inputs.push_back(view(v, call));
    for (ValueId v : node.outputs()) {
      function.outputs.push_back(view(v, call));
      written(v, 0);
    }
    call.function = std::make_shared<const ExternCall>(std::move(function));
    program_.calls.push_back(std::move(call));
    return Error::success();
  }

  // Such operands lie in one piece: parts of other values are stretches of them.
  ExternCall::View view(ValueId v, KernelCall& call) {
    if (!v.valid()) return {-1, DType::f32, {}};
    const TensorType& type = graph_.value(v).type;
    TW_CHECK(type.layout.plain(), "'{0}' of {1} has the layout of {2}", graph_.value(v).name,
             call.name, to_string(type));
    call.arguments.push_back(tensor(v, 0));
    return {static_cast<int>(call.arguments.size()) - 1, type.dtype, type.shape};
  }

  // Programs of the node's regions, and what the call needs to run them.
  Expected<std::shared_ptr<const RegionCall>> add_regions(const Node& node) {
    std::vector<int> numbers;
    for (const Graph* region : regions_of(node.attrs)) {
      if (!region->data_symbols.empty())
        return make_error(DiagCode::unsupported,
                          "{0} '{1}': data inside of it decide about sizes (element {2} of '{3}')",
                          op_info(node.attrs).name, node.name, region->data_symbols[0].element,
                          region->value(region->data_symbols[0].value).name);
      const std::vector<Group> groups = options_.region_groups ? options_.region_groups(*region)
                                                               : fuse_groups(*region);
      ProgramOptions options = options_;
      options.devices.clear();
      options.on_plan = nullptr;
      ProgramBuilder inner(*region, groups, target_, options);
      inner.in_region_ = true;
      exchange_shared(inner);
      Expected<Program> made = inner.run();
      if (!made) return made.takeError();
      exchange_lists(inner.program_, *made);  // which has left the builder with them
      exchange_shared(inner);
      numbers.push_back(static_cast<int>(program_.regions.size()));
      program_.regions.push_back(std::move(*made));
    }
    TW_ASSIGN(RegionLayout layout, lay_out_regions(graph_, node, numbers, program_.regions));
    if (!is_const(layout.workspace, 0)) {
      workspace_.emplace_back(program_.calls.size(), lifetimes_.size());
      add_lifetime(layout.workspace, 0);
    }
    return std::make_shared<const RegionCall>(std::move(layout.call));
  }

  // What all programs of a model have together.
  static void exchange_lists(Program& a, Program& b) {
    std::swap(a.kernels, b.kernels);
    std::swap(a.work, b.work);
    std::swap(a.weights, b.weights);
    std::swap(a.regions, b.regions);
  }
  void exchange_shared(ProgramBuilder& other) {
    exchange_lists(program_, other.program_);
    std::swap(kernels_, other.kernels_);
    std::swap(weights_, other.weights_);
    std::swap(weight_devices_, other.weight_devices_);
  }

  Expected<int> kernel_index(const LoweredGroup& lowered, const std::string& stem, int device) {
    const std::string hash = std::to_string(device) + ":" + kernel_hash(lowered.kernel);
    auto found = kernels_.find(hash);
    if (found == kernels_.end()) {
      TW_ASSIGN(const int index, add_kernel(lowered, stem, target_of(device)));
      found = kernels_.emplace(hash, index).first;
    }
    return found->second;
  }

  Expected<int> add_kernel(const LoweredGroup& lowered, const std::string& stem,
                           const Target& target) {
    TW_ASSIGN(Kernel scheduled, options_.schedule(lowered, target));
    const int index = static_cast<int>(program_.kernels.size());
    scheduled.name = stem + "_" + std::to_string(index);
    if (options_.on_kernel) options_.on_kernel(lowered.kernel, scheduled);
    program_.kernels.push_back(std::move(scheduled));
    program_.work.push_back(count_work(lowered.kernel));
    return index;
  }

  Error add_call(int kernel, const std::vector<std::string>& symbols,
                 const std::vector<LoweredArgument>& arguments, const std::string& name,
                 int device) {
    for (size_t i = 0; i < arguments.size(); ++i)
      if (!arguments[i].constant && buffer(kernel, i).role != BufferRole::output)
        TW_TRY(bring(arguments[i].value, device));
    KernelCall call;
    call.kernel = kernel;
    call.name = name;
    call.device = call.from = device;
    for (const std::string& symbol : symbols) call.symbols.push_back(var(symbol));
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].constant)
        call.arguments.push_back(weight(arguments[i], buffer(kernel, i), device));
      else call.arguments.push_back(tensor(arguments[i].value, device));
      if (buffer(kernel, i).role == BufferRole::output) written(arguments[i].value, device);
    }
    WorkspaceLayout layout = workspace_layout(program_.kernels[static_cast<size_t>(kernel)],
                                              target_of(device).cores);
    if (!is_const(layout.bytes, 0)) {
      workspace_.emplace_back(program_.calls.size(), lifetimes_.size());
      add_lifetime(layout.bytes, device);
    }
    program_.calls.push_back(std::move(call));
    return Error::success();
  }

  const Buffer& buffer(int kernel, size_t argument) const {
    return program_.kernels[static_cast<size_t>(kernel)].buffers[argument];
  }

  // Of the next call.
  int add_lifetime(const Expr& bytes, int device) {
    // In a branch that is not taken: sizes that nobody checks
    const bool may_be_negative = in_region_ && !can_prove(le(Expr(0), bytes), symbols_);
    lifetimes_.push_back({may_be_negative ? max(bytes, Expr(0)) : bytes, next_call(), next_call()});
    lifetime_devices_.push_back(device);
    return static_cast<int>(lifetimes_.size()) - 1;
  }

  // From now on the value's newest bytes are on that device alone.
  void written(ValueId v, int device) { valid_on_[storage_.of(v).root.index] = {device}; }

  // Sees to the value's bytes on a device before the next call; two devices meet in the processor's
  // memory.
  Error bring(ValueId v, int device) {
    const ValueId root = storage_.of(v).root;
    if (graph_.is_constant(root)) return Error::success();
    std::set<int>& valid = valid_on_.try_emplace(root.index, std::set<int>{0}).first->second;
    if (valid.count(device)) return Error::success();
    if (device != 0) TW_TRY(bring(root, 0));
    const int from = *valid.begin();
    TW_TRY(add_copy(root, tensor(root, device), graph_.value(root).name, device, from));
    valid.insert(device);
    return Error::success();
  }

  // Arena operands carry the lifetime's number as their index until the plan is made; those of
  // weights their piece's.
  Operand tensor(ValueId v, int device) {
    auto [r, offset] = storage_.of(v);
    if (graph_.is_constant(r))
      return weight({r, true, *graph_.value(r).constant, nullptr},
                    {graph_.value(r).name, graph_.value(r).type.dtype, graph_.value(r).type.shape,
                     BufferRole::constant, "global"},
                    device);
    auto found = place_.find({device, r.index});
    if (found == place_.end()) {
      const int lifetime = add_lifetime(byte_count(graph_.value(r).type), device);
      found = place_.emplace(std::pair(device, r.index), Operand{Place::arena, lifetime, Expr(0)})
                  .first;
      naive_.push_back(lifetimes_.back().bytes);
    }
    if (found->second.place == Place::arena)
      lifetimes_[static_cast<size_t>(found->second.index)].last = next_call();
    if (found->second.place == Place::output)
      need_room(found->second, byte_count(graph_.value(r).type));
    return shifted(found->second, offset);
  }

  // In front of the first call that writes an output of unknown size.
  void need_room(const Operand& at, const Expr& bytes) {
    if (in_region_ || !is_data_dependent(bytes) || !has_room_.insert(at.index).second) return;
    SizeStep step{.kind = SizeStep::Kind::room,
                  .before = program_.calls.size(),
                  .at = {at.place, at.index, Expr(0)}};
    step.bytes = bytes;
    program_.steps.push_back(std::move(step));
  }

  Operand weight(const LoweredArgument& argument, const Buffer& buffer, int device) {
    std::string key = std::to_string(device) + ":" +
                      std::to_string(reinterpret_cast<uintptr_t>(argument.blob.bytes.data())) +
                      ":" + (argument.pack ? print(*argument.pack) : "");
    auto found = weights_.find(key);
    if (found == weights_.end()) {
      int64_t size = dtype_bytes(buffer.dtype);
      for (const Expr& extent : buffer.shape) size *= as_const(simplify(extent)).value_or(1);
      WeightPiece piece;
      piece.size = static_cast<uint64_t>(size);
      piece.source = argument.blob;
      piece.pack = argument.pack;
      piece.name = argument.value.valid() ? graph_.value(argument.value).name : buffer.name;
      found = weights_.emplace(key, program_.weights.size()).first;
      program_.weights.push_back(std::move(piece));
      weight_devices_.push_back(device);
    }
    return {Place::weights, static_cast<int>(found->second), Expr(0)};
  }

  // Outputs that are inputs, constants, parts of a value or a second name of another output are
  // copied.
  Error copy_outputs() {
    for (size_t i : copies_) {
      const ValueId v = graph_.outputs()[i].value, root = storage_.of(v).root;
      auto valid = valid_on_.find(root.index);
      const int from = valid == valid_on_.end() || valid->second.count(0) ? 0
                                                                          : *valid->second.begin();
      need_room({Place::output, static_cast<int>(i), Expr(0)}, byte_count(graph_.value(v).type));
      TW_TRY(add_copy(v, {Place::output, static_cast<int>(i), Expr(0)}, graph_.outputs()[i].name, 0,
                      graph_.is_constant(root) ? 0 : from));
    }
    return Error::success();
  }

  // A copy on a device; from another one: a transfer.
  Error add_copy(ValueId from, const Operand& to, const std::string& name, int device,
                 std::optional<int> source = std::nullopt) {
    const TensorType& type = graph_.value(from).type;
    Expr count = simplify(element_count(physical_shape(type)), symbols_);
    Kernel copy;
    copy.name = "copy";
    visit(count, [&](const Expr& e) {
      if (e->kind == ExprKind::var && !std::ranges::count(copy.symbols, e->name))
        copy.symbols.push_back(e->name);
    });
    copy.buffers = {{"x", type.dtype, {count}, BufferRole::input, "global"},
                    {"y", type.dtype, {count}, BufferRole::output, "global"}};
    StmtNode store{};
    store.label = "y";
    store.buffer = BufferId{1};
    store.indices = {var("i0")};
    store.value = load(BufferId{0}, type.dtype, {var("i0")});
    copy.body = make_loop("i0", count, make_store(std::move(store)));
    KernelCall call;
    TW_ASSIGN(call.kernel, kernel_index({copy, ElementwiseStages{}, {}}, "copy",
                                        source.value_or(device) == device ? device : 0));
    call.name = name;
    call.device = device;
    call.from = source.value_or(device);
    for (const std::string& symbol : copy.symbols) call.symbols.push_back(var(symbol));
    call.arguments = {tensor(from, call.from), to};
    program_.calls.push_back(std::move(call));
    return Error::success();
  }

  void plan() {
    join_in_place(program_, lifetimes_);
    // The workspace of the call around it holds all
    if (in_region_) rooms_.assign(lifetimes_.size(), -1);
    else rooms_ = plan_rooms(lifetimes_, symbols_, program_);
    std::vector<Expr> offsets(lifetimes_.size());
    for (int device = 0; device <= static_cast<int>(target_.devices.size()); ++device) {
      plan_arena(device, offsets);
      if (!in_region_) plan_weights(device);
    }
    for (KernelCall& call : program_.calls)
      for (size_t a = 0; a < call.arguments.size(); ++a)
        settle(call.arguments[a], a == 0 ? call.from : call.device, offsets);
    for (SizeStep& step : program_.steps)
      if (step.kind == SizeStep::Kind::read || step.kind == SizeStep::Kind::indices)
        settle(step.at, 0, offsets);
    for (Program& region : program_.regions)
      for (KernelCall& call : region.calls)
        for (Operand& operand : call.arguments)
          if (!in_region_) settle_weights(operand, 0);
    for (auto [call, lifetime] : workspace_) {
      program_.calls[call].workspace = rooms_[lifetime] < 0 ? offsets[lifetime] : Expr(0);
      program_.calls[call].workspace_room = rooms_[lifetime];
    }
    for (const Expr& bytes : naive_)
      program_.naive_arena_bytes += static_cast<uint64_t>(
          eval_int(bytes, [](std::string_view) { return int64_t{1}; }));
  }

  // From the number of a lifetime to where it lies.
  void settle(Operand& operand, int device, const std::vector<Expr>& offsets) {
    const auto index = static_cast<size_t>(operand.index);
    if (operand.place == Place::arena && rooms_[index] >= 0)
      operand = {Place::room, rooms_[index], operand.offset};
    else if (operand.place == Place::arena)
      operand = {Place::arena, 0, simplify_dim(offsets[index] + operand.offset)};
    else if (!in_region_) settle_weights(operand, device);
  }

  // From the number of a piece of the weights, which are planned when all programs are there, to
  // its place.
  void settle_weights(Operand& operand, int device) const {
    if (operand.place != Place::weights) return;
    const uint64_t base = device ? program_.devices[static_cast<size_t>(device) - 1].weights_offset
                                 : 0;
    operand = {
        Place::weights, 0,
        simplify_dim(Expr(static_cast<int64_t>(
                         program_.weights[static_cast<size_t>(operand.index)].offset - base)) +
                     operand.offset)};
  }

  void plan_arena(int device, std::vector<Expr>& offsets) {
    std::vector<size_t> own;
    std::vector<Lifetime> lifetimes;
    for (size_t i = 0; i < lifetimes_.size(); ++i) {
      if (lifetime_devices_[i] != device || rooms_[i] >= 0) continue;
      own.push_back(i);
      lifetimes.push_back(lifetimes_[i]);
    }
    MemoryPlan memory = plan_memory(lifetimes, symbols_);
    for (size_t i = 0; i < own.size(); ++i) offsets[own[i]] = memory.offsets[i];
    (device ? program_.devices[static_cast<size_t>(device) - 1].arena_bytes
            : program_.arena_bytes) = memory.bytes;
    if (device == 0 && !program_.symbols.empty())
      program_.max_arena_bytes = largest(memory.bytes, program_.symbols, symbols_);
    if (device == 0 && options_.on_plan) options_.on_plan(memory, lifetimes);
  }

  // A device's weights lie together, in the order of their first use.
  void plan_weights(int device) {
    const uint64_t begin = program_.weight_bytes;
    for (size_t i = 0; i < program_.weights.size(); ++i) {
      if (weight_devices_[i] != device) continue;
      program_.weights[i].offset = program_.weight_bytes;
      program_.weight_bytes += (program_.weights[i].size + 63) / 64 * 64;
    }
    if (device == 0) return;
    DeviceProgram& own = program_.devices[static_cast<size_t>(device) - 1];
    own.weights_offset = begin;
    own.weight_bytes = program_.weight_bytes - begin;
  }

  const Graph& graph_;
  const std::vector<Group>& groups_;
  const Target& target_;
  const ProgramOptions& options_;
  Program program_;
  Ranges symbols_;
  Storage storage_;
  std::map<std::pair<int, int32_t>, Operand> place_;  // by device and value
  std::map<int32_t, int> made_on_;
  // Devices that have a value's newest bytes; absent: an input, the processor
  std::map<int32_t, std::set<int>> valid_on_;
  std::map<std::string, int> kernels_;  // device and unscheduled hash -> index
  std::map<std::string, size_t> weights_;
  std::vector<size_t> copies_;
  std::vector<Lifetime> lifetimes_;
  std::vector<int> lifetime_devices_, weight_devices_;
  std::vector<std::pair<size_t, size_t>> workspace_;  // call, lifetime
  std::vector<Expr> naive_;
  bool in_region_ = false;  // builds the program of a region
  // Numbers of the data symbols that are read from a value
  std::multimap<ValueId, size_t> symbols_of_;
  std::vector<bool> is_read_;     // by data symbol
  std::set<int> has_room_;        // outputs
  std::set<std::string> needed_;  // conditions and numbers of bytes that were looked at
  // By size: its largest multiple that must be countable, and the condition that says so
  std::map<std::string, std::pair<int64_t, size_t>> multiples_;
  std::set<std::pair<int32_t, std::string>> looked_at_;  // indices, and for which extent
  std::vector<int> rooms_;                               // by lifetime; -1: in the arena
};

}  // namespace

Expected<Program> build_program(const Graph& graph, const std::vector<Group>& groups,
                                const Target& target, const ProgramOptions& options) {
  return ProgramBuilder(graph, groups, target, options).run();
}

}  // namespace tw
