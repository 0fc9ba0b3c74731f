// GroupBuilder: parameters, value expressions and stages.
#include "kernels/common/group_builder.h"

#include <algorithm>

#include "ir/graph/short_floats.h"

namespace tw {

Index variables(const std::vector<Axis>& axes) {
  Index index;
  for (const Axis& a : axes) index.push_back(var(a.name));
  return index;
}

Shape extents(const std::vector<Axis>& axes) {
  Shape shape;
  for (const Axis& a : axes) shape.push_back(a.extent);
  return shape;
}

Loops loops(const std::vector<Axis>& axes) {
  Loops all;
  for (const Axis& a : axes) all.push_back(a.loop());
  return all;
}

GroupBuilder::GroupBuilder(const Graph& graph_in, const Group& group_in)
    : graph(graph_in), group(group_in) {
  for (NodeId id : group.nodes) inside_.insert(graph.node(id).output.index);
  for (const std::string& symbol : graph.all_symbols()) ranges_[symbol] = symbol_range(symbol);
}

ValueId GroupBuilder::output_value() const { return graph.node(group.nodes.back()).output; }

std::string GroupBuilder::fresh_buffer_name(const std::string& wanted) const {
  if (!kernel_.find_buffer(wanted)) return wanted;
  for (int i = 1;; ++i) {
    std::string name = wanted + std::to_string(i);
    if (!kernel_.find_buffer(name)) return name;
  }
}

BufferId GroupBuilder::add_buffer(Buffer buffer, LoweredArgument argument) {
  buffer.name = fresh_buffer_name(buffer.name);
  kernel_.buffers.push_back(std::move(buffer));
  arguments_.push_back(std::move(argument));
  return BufferId{static_cast<int32_t>(kernel_.buffers.size() - 1)};
}

Layout GroupBuilder::layout_to_arrange(ValueId v, const Shape& shape) const {
  const Layout& layout = type(v).layout;
  if (layout.plain()) return {};
  for (size_t i = 0; !shape.empty() && i <= static_cast<size_t>(layout.axis); ++i)
    TW_CHECK(i < shape.size() && equal(shape[i], type(v).shape[i]),
             "{0} has blocks in a collapsed axis", graph.value(v).name);
  return layout;
}

BufferId GroupBuilder::input(ValueId v, const Shape& shape, const char* constant_name) {
  auto found = inputs_.find(v.index);
  if (found != inputs_.end()) return found->second;
  const Value& value = graph.value(v);
  LoweredArgument argument{v, false, {}, nullptr, layout_to_arrange(v, shape)};
  if (value.constant) {
    argument.constant = true;
    argument.blob = *value.constant;
  }
  BufferId id = add_buffer({value.constant ? constant_name : "x", value.type.dtype,
                            shape.empty() ? type(v).shape : shape,
                            value.constant ? BufferRole::constant : BufferRole::input, "global"},
                           std::move(argument));
  inputs_[v.index] = id;
  return id;
}

BufferId GroupBuilder::output(ValueId v, const Shape& shape) {
  return add_buffer(
      {"y", type(v).dtype, shape.empty() ? type(v).shape : shape, BufferRole::output, "global"},
      {v, false, {}, nullptr, layout_to_arrange(v, shape)});
}

BufferId GroupBuilder::constant_values(std::string name, const Tensor& tensor) {
  auto owner = std::make_shared<Tensor>(tensor);
  Blob blob{owner, std::span<const std::byte>(owner->bytes)};
  const Shape shape(tensor.shape.begin(), tensor.shape.end());
  return add_buffer({std::move(name), tensor.dtype, shape, BufferRole::constant, "global"},
                    {{}, true, std::move(blob), nullptr});
}

BufferId GroupBuilder::temp(std::string name, DType dtype, Shape shape) {
  return add_buffer({std::move(name), dtype, std::move(shape), BufferRole::temp, "global"}, {});
}

Expr GroupBuilder::parameter_element(ValueId v, const Index& logical) {
  const Value& value = graph.value(v);
  if (value.constant && is_const(element_count(value.type.shape), 1)) {
    Tensor t = graph.constant_tensor(v);
    return is_float(t.dtype) ? imm(t.at(0), t.dtype) : int_imm(t.int_at(0), t.dtype);
  }
  BufferId buffer = input(v);
  Index at = logical;
  const Shape& declared = shape_of(buffer);
  if (declared.size() != at.size())
    at = unflatten_index(declared, flatten_index(value.type.shape, at));
  for (Expr& e : at) e = simplified(e);
  return load(buffer, value.type.dtype, std::move(at));
}

Expr GroupBuilder::element(ValueId v, const Index& logical) {
  auto maker = makers_.find(v.index);
  if (maker != makers_.end()) return maker->second(logical);
  if (!inside(v)) return parameter_element(v, logical);
  return injective_element(*this, *graph.def(v), logical);
}

void GroupBuilder::declare(const std::vector<Axis>& axes) {
  for (const Axis& axis : axes)
    ranges_[axis.name] = Range{Expr(0), simplify(axis.extent - Expr(1))};
}

static Stmt loops_around(const std::vector<Axis>& axes, Stmt body) {
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis)
    body = make_loop(axis->name, axis->extent, body, LoopKind::serial, axis->role);
  return body;
}

stmt::Store GroupBuilder::store_of(std::string label, BufferId buffer, const Index& indices,
                                   const Expr& value, const Expr& where) const {
  stmt::Store store;
  store.label = std::move(label);
  store.buffer = buffer;
  for (const Expr& e : indices) store.indices.push_back(simplified(e));
  store.value = simplified(value);
  if (where.defined()) {
    Expr condition = simplified(where);
    if (!is_const(condition, 1)) store.where = condition;
  }
  return store;
}

Stage GroupBuilder::stage(std::string label, const std::vector<Axis>& axes, BufferId buffer,
                          const Index& indices, const Expr& value, Combiner combiner, Expr init,
                          Expr where) {
  // The first reduce iteration does the init. A loop that may be empty therefore gets at least one
  // iteration, which combines nothing if the loop is empty.
  std::vector<Axis> init_axes = axes;
  for (Axis& axis : init_axes) {
    if (axis.role != AxisRole::reduce || combiner == Combiner::none ||
        can_prove(le(Expr(1), axis.extent), ranges_))
      continue;
    where = logical_and(where, lt(var(axis.name), axis.extent));
    axis.extent = simplified(max(axis.extent, Expr(1)));
  }
  declare(init_axes);
  const Stage stage(label, name_of(buffer));
  stmt::Store store = store_of(std::move(label), buffer, indices, value, where);
  store.combiner = combiner;
  store.init = std::move(init);
  stages_.push_back(loops_around(init_axes, make_store(std::move(store))));
  return writers_[buffer.index] = stage;
}

Stage GroupBuilder::stage_of(BufferId b) const {
  const auto found = writers_.find(b.index);
  return found == writers_.end() ? Stage() : found->second;
}

Stages GroupBuilder::nest(const std::vector<Axis>& axes, const std::vector<Store>& stores) {
  declare(axes);
  std::vector<Stmt> body;
  Stages stages;
  for (const Store& s : stores) {
    body.push_back(make_store(store_of(s.label, s.buffer, s.indices, s.value, s.where)));
    stages.push_back(writers_[s.buffer.index] = Stage(s.label, name_of(s.buffer)));
  }
  stages_.push_back(loops_around(axes, make_sequence(std::move(body))));
  return stages;
}

void GroupBuilder::within(const std::vector<Axis>& axes, const std::function<void()>& body) {
  declare(axes);
  std::vector<Stmt> before = std::exchange(stages_, {});
  body();
  before.push_back(loops_around(axes, make_sequence(std::move(stages_))));
  stages_ = std::move(before);
}

void GroupBuilder::when(const Expr& condition, const std::function<void()>& body) {
  std::vector<Stmt> before = std::exchange(stages_, {});
  body();
  const Stmt all = make_sequence(std::move(stages_));
  before.push_back(condition.defined() ? make_if(condition, all) : all);
  stages_ = std::move(before);
}

GroupBuilder::Output GroupBuilder::store_output() {
  ValueId out = output_value();
  std::vector<Axis> axes;
  for (const Expr& extent : type(out).shape)
    axes.push_back({"i" + std::to_string(axes.size()), extent});
  declare(axes);
  const Index index = variables(axes);
  const Expr value = element(out, index);
  return {stage("y", axes, output(out), index, value), loops(axes)};
}

GroupKernel GroupBuilder::kernel(const char* name) {
  std::vector<int32_t> order(kernel_.buffers.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
  auto rank = [&](int32_t i) {
    switch (kernel_.buffers[static_cast<size_t>(i)].role) {
      case BufferRole::input: return 0;
      case BufferRole::constant: return 1;
      case BufferRole::output: return 2;
      case BufferRole::temp: return 3;
    }
    TW_UNREACHABLE("bad role");
  };
  std::sort(order.begin(), order.end(),
            [&](int32_t a, int32_t b) { return std::pair(rank(a), a) < std::pair(rank(b), b); });
  std::vector<BufferId> renumbered(order.size());
  GroupKernel result;
  for (size_t i = 0; i < order.size(); ++i) {
    renumbered[static_cast<size_t>(order[i])] = BufferId{static_cast<int32_t>(i)};
    const Buffer& buffer = kernel_.buffers[static_cast<size_t>(order[i])];
    result.kernel.buffers.push_back(buffer);
    if (buffer.role != BufferRole::temp)
      result.arguments.push_back(arguments_[static_cast<size_t>(order[i])]);
  }
  result.kernel.body = with_buffers(make_sequence(stages_), [&](BufferId id) {
    return renumbered[static_cast<size_t>(id.index)];
  });
  std::set<std::string> used;
  auto note = [&](const Expr& whole) {
    visit(whole, [&](const Expr& e) {
      if (const auto* variable = as<expr::Var>(e)) used.insert(variable->name);
    });
  };
  for (const Buffer& buffer : result.kernel.buffers)
    for (const Expr& extent : buffer.shape) note(extent);
  rewrite_exprs(result.kernel.body, [&](const Expr& e) {
    note(e);
    return e;
  });
  for (const std::string& symbol : graph.all_symbols())
    if (used.count(symbol)) result.kernel.symbols.push_back(symbol);
  result.kernel.name = name;
  return result;
}

DType accumulator_type(DType t) { return t == DType::f16 || t == DType::bf16 ? DType::f32 : t; }

Expr less_zero(const Expr& x, int64_t zero) { return zero == 0 ? x : x - int_imm(zero, x.type()); }

bool multiplies_tf32(const GroupBuilder& b) {
  const std::vector<ValueId>& operands = b.graph.node(b.group.anchor).inputs;
  return operands.size() > 1 && std::all_of(operands.begin(), operands.begin() + 2, [&](ValueId v) {
           return b.inside(v) && rounds_to_tf32(*b.graph.def(v));
         });
}

BufferId GroupBuilder::padded(ValueId x, const Shape& spatial, const Ints& before, int64_t fill) {
  const TensorType& t = type(x);
  Shape shape = {t.shape[0], t.shape[1]};
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  std::vector<Axis> axes;
  for (const Expr& extent : shape) axes.push_back({"pad" + std::to_string(axes.size()), extent});
  declare(axes);
  Index at = variables(axes), from = at;
  Expr inside;
  for (size_t i = 0; i < spatial.size(); ++i) {
    from[i + 2] = simplified(at[i + 2] - Expr(before[i]));
    inside = logical_and(inside,
                         logical_and(le(Expr(0), from[i + 2]), lt(from[i + 2], t.shape[i + 2])));
  }
  BufferId padded = temp("xp", t.dtype, extents(axes));
  stage("pad", axes, padded, at,
        select(inside, load(input(x), t.dtype, from),
               is_float(t.dtype) ? imm(0, t.dtype) : int_imm(fill, t.dtype)));
  return padded;
}

}  // namespace tw
