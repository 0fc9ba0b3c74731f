#include "autotune/dataset/layer.h"

#include <algorithm>
#include <array>

#include "ir/graph/queries.h"

namespace tw {
namespace {

constexpr std::array<const char*, kLayerKindCount> kLayerKinds = {
    "conv", "depthwise", "matmul", "batch_matmul", "pool", "softmax", "layer_norm", "mean", "add"};

constexpr std::array kConv = {"batch",  "height", "width",  "in",    "out",
                              "kernel", "stride", "groups", "follow"};
constexpr std::array kDepthwise = {"batch",  "height", "width", "channels",
                                   "kernel", "stride", "follow"};
constexpr std::array kMatMul = {"rows", "depth", "columns", "transposed", "follow"};
constexpr std::array kBatchMatMul = {"batch", "rows", "depth", "columns", "transposed"};
constexpr std::array kPool = {"batch",  "channels", "height", "width",
                              "kernel", "stride",   "average"};
constexpr std::array kRows = {"rows", "width"};
constexpr std::array kImage = {"batch", "channels", "height", "width"};

// The function behind a convolution or product
enum Follow : int64_t { nothing, relu, clip, silu, gelu, add, add_relu, sigmoid, kFollows };

// The functions of the nodes behind the anchor, except for the addition of a bias
std::vector<std::string> functions_behind(const ParsedTask& task) {
  std::vector<std::string> names;
  bool behind = false;
  for (const NodeId id : task.group.nodes) {
    const Node& node = task.graph.node(id);
    if (behind) {
      const auto* unary = get_if<op::Unary>(&node);
      const auto* binary = get_if<op::Binary>(&node);
      const bool bias = binary && binary->function == BinaryOp::add &&
                        std::ranges::any_of(node.inputs, [&](ValueId v) {
                          return task.graph.is_constant(v) &&
                                 task.graph.value(v).type.shape.size() <= 1;
                        });
      if (!bias)
        names.push_back(unary    ? op_name(unary->function)
                        : binary ? op_name(binary->function)
                                 : op_info(node.attrs).name);
    }
    behind |= id == task.group.anchor;
  }
  return names;
}

Follow follow_of(const ParsedTask& task) {
  const std::vector<std::string> names = functions_behind(task);
  const auto has = [&](const char* name) { return std::ranges::count(names, name) > 0; };
  if (names.empty()) return nothing;
  if (has("normal_cdf") || has("erf")) return gelu;
  if (has("sigmoid")) return has("mul") ? silu : sigmoid;
  if (has("add")) return has("max") ? add_relu : add;
  if (has("max")) return has("min") ? clip : relu;
  return nothing;
}

std::optional<std::vector<int64_t>> shape_of(const ParsedTask& task, ValueId value) {
  return static_shape(task.graph.value(value).type.shape);
}

bool all_equal(const Ints& values) {
  return std::ranges::all_of(values, [&](int64_t v) { return v == values.front(); });
}

std::optional<Layer> of_conv(const ParsedTask& task, const Node& node, const op::Conv& conv) {
  const auto x = shape_of(task, node.inputs[0]), w = shape_of(task, node.inputs[1]);
  if (!x || !w || x->size() != 4 || (*w)[2] != (*w)[3] || !all_equal(conv.strides) ||
      !all_equal(conv.dilations) || conv.dilations.front() != 1 || !all_equal(conv.pads) ||
      conv.pads.front() != (*w)[2] / 2)
    return std::nullopt;
  const int64_t stride = conv.strides.front(), follow = follow_of(task);
  if (conv.group > 1 && conv.group == (*x)[1] && (*w)[0] == (*x)[1])
    return Layer{LayerKind::depthwise,
                 {(*x)[0], (*x)[2], (*x)[3], (*x)[1], (*w)[2], stride, follow}};
  return Layer{LayerKind::conv,
               {(*x)[0], (*x)[2], (*x)[3], (*x)[1], (*w)[0], (*w)[2], stride, conv.group, follow}};
}

std::optional<Layer> of_product(const ParsedTask& task, const Node& node, const op::MatMul& m) {
  const auto a = shape_of(task, node.inputs[0]), b = shape_of(task, node.inputs[1]);
  if (!a || !b || m.trans_a) return std::nullopt;
  const int64_t rows = (*a)[a->size() - 2], depth = a->back(),
                columns = (*b)[b->size() - (m.trans_b ? 2 : 1)];
  const int64_t batch = element_count(std::span<const int64_t>(*a)) /
                        std::max<int64_t>(1, rows * depth);
  if (task.graph.is_constant(node.inputs[1]) && b->size() == 2)
    return Layer{LayerKind::matmul, {batch * rows, depth, columns, m.trans_b, follow_of(task)}};
  if (a->size() != b->size() || !std::equal(a->begin(), a->end() - 2, b->begin()))
    return std::nullopt;
  return Layer{LayerKind::batch_matmul, {batch, rows, depth, columns, m.trans_b}};
}

std::optional<Layer> of_rows(const ParsedTask& task, const Node& node, LayerKind kind,
                             int64_t axis) {
  const auto x = shape_of(task, node.inputs[0]);
  if (!x || x->empty() || (axis != -1 && axis + 1 != static_cast<int64_t>(x->size())))
    return std::nullopt;
  const int64_t width = x->back(), all = element_count(std::span<const int64_t>(*x));
  return Layer{kind, {all / std::max<int64_t>(1, width), width}};
}

int64_t out_extent(int64_t in, int64_t kernel, int64_t stride) {
  return (in + kernel / 2 * 2 - kernel) / stride + 1;
}

constexpr const char* kLayerNode = "layer";  // name of the anchor's node
constexpr int64_t kFewChannels = 4;  // most channels of a first layer, which has no neighbour
constexpr int64_t kNeighbour = 8;    // channels on the far side of a neighbour

// A graph under construction; all values are f32.
class LayerGraph {
 public:
  LayerGraph() { graph_.name = kLayerNode; }
  ValueId bare_input(const std::vector<int64_t>& shape) {
    return graph_.add_input("x" + std::to_string(graph_.inputs().size()),
                            {DType::f32, dims(shape), {}});
  }
  ValueId input(const std::vector<int64_t>& shape) {
    if (shape.size() != 4 || shape[1] <= kFewChannels) return bare_input(shape);
    return pointwise(bare_input({shape[0], kNeighbour, shape[2], shape[3]}), kNeighbour, shape[1]);
  }
  // The values do not matter. They differ, so that the tensor is no splat, and are too many to be
  // written out.
  ValueId weights(const std::vector<int64_t>& shape) {
    Tensor t = Tensor::zeros(DType::f32, shape);
    auto all = t.as<float>();
    for (size_t i = 0; i < all.size(); ++i)
      all[i] = static_cast<float>(i * 2654435761U % 4096) / 4096 - 0.5F;
    return graph_.add_constant("c" + std::to_string(constants_++), t);
  }
  ValueId number(double value) {
    Tensor t = Tensor::zeros(DType::f32, {});
    t.set(0, value);
    return graph_.add_constant("c" + std::to_string(constants_++), t);
  }
  ValueId add(OpAttrs attrs, std::vector<ValueId> inputs, const char* node = "") {
    if (error_) return {};
    Expected<ValueId> value = graph_.add(std::move(attrs), std::move(inputs), "", node);
    if (value) return *value;
    error_ = error_text(value.takeError());
    return {};
  }
  ValueId apply(UnaryOp function, ValueId x) { return add(op::Unary{function}, {x}); }
  ValueId apply(BinaryOp function, ValueId x, ValueId y, const char* node = "") {
    return add(op::Binary{function}, {x, y}, node);
  }
  ValueId layer(OpAttrs attrs, std::vector<ValueId> inputs) {
    return add(std::move(attrs), std::move(inputs), kLayerNode);
  }
  // `residual` is the tensor to add. The graph makes it before the layer, so that the addition
  // joins the layer's group.
  ValueId follow(ValueId x, int64_t kind, ValueId residual) {
    if (error_) return {};
    if (residual.valid()) x = apply(BinaryOp::add, x, residual);
    switch (kind) {
      case relu:
      case add_relu: return apply(BinaryOp::max, x, number(0));
      case clip: return apply(BinaryOp::min, apply(BinaryOp::max, x, number(0)), number(6));
      case silu: return apply(BinaryOp::mul, x, apply(UnaryOp::sigmoid, x));
      case gelu: return apply(BinaryOp::mul, x, apply(UnaryOp::normal_cdf, x));
      case sigmoid: return apply(UnaryOp::sigmoid, x);
      default: return x;
    }
  }
  ValueId residual(int64_t kind, const std::vector<int64_t>& shape) {
    return kind == add_relu || kind == Follow::add ? input(shape) : ValueId();
  }
  Expected<Graph> finish(ValueId result) {
    if (error_) return make_error(DiagCode::invalid_argument, "{0}", *error_);
    const auto shape = static_shape(graph_.value(result).type.shape);
    if (shape && shape->size() == 4 && (*shape)[2] * (*shape)[3] > 1)
      result = pointwise(result, (*shape)[1], kNeighbour);
    if (error_) return make_error(DiagCode::invalid_argument, "{0}", *error_);
    graph_.add_output(result, "y");
    return std::move(graph_);
  }

 private:
  ValueId pointwise(ValueId x, int64_t in, int64_t out) {
    op::Conv conv;
    conv.strides = conv.dilations = {1, 1}, conv.pads = Ints(4, 0);
    return add(conv, {x, weights({out, in, 1, 1}), weights({out})});
  }
  static Shape dims(const std::vector<int64_t>& shape) { return {shape.begin(), shape.end()}; }
  Graph graph_;
  int constants_ = 0;
  std::optional<std::string> error_;
};

Expected<Graph> conv_graph(const std::vector<int64_t>& v) {
  const int64_t n = v[0], h = v[1], w = v[2], in = v[3], out = v[4], k = v[5], stride = v[6],
                group = v[7];
  if (group < 1 || in % group != 0 || out % group != 0 || out_extent(h, k, stride) < 1 ||
      out_extent(w, k, stride) < 1 || h + k / 2 * 2 < k || w + k / 2 * 2 < k)
    return make_error(DiagCode::invalid_argument, "no such convolution");
  LayerGraph g;
  op::Conv conv;
  conv.strides = {stride, stride}, conv.dilations = {1, 1}, conv.pads = Ints(4, k / 2);
  conv.group = group;
  const ValueId residual = g.residual(v[8],
                                      {n, out, out_extent(h, k, stride), out_extent(w, k, stride)});
  const ValueId x = g.input({n, in, h, w});
  const ValueId y = g.layer(conv, {x, g.weights({out, in / group, k, k}), g.weights({out})});
  return g.finish(g.follow(y, v[8], residual));
}

Expected<Graph> product_graph(const Layer& layer) {
  const std::vector<int64_t>& v = layer.values;
  LayerGraph g;
  op::MatMul product;
  if (layer.kind == LayerKind::batch_matmul) {
    product.trans_b = v[4] != 0;
    const ValueId a = g.input({v[0], v[1], v[2]});
    const ValueId b = g.input(product.trans_b ? std::vector{v[0], v[3], v[2]}
                                              : std::vector{v[0], v[2], v[3]});
    return g.finish(g.layer(product, {a, b}));
  }
  product.trans_b = v[3] != 0;
  const ValueId residual = g.residual(v[4], {v[0], v[2]});
  const ValueId x = g.input({v[0], v[1]});
  const ValueId w = g.weights(product.trans_b ? std::vector{v[2], v[1]} : std::vector{v[1], v[2]});
  const ValueId y = g.apply(BinaryOp::add, g.layer(product, {x, w}), g.weights({v[2]}));
  return g.finish(g.follow(y, v[4], residual));
}

}  // namespace

const char* layer_kind_name(LayerKind kind) { return kLayerKinds[static_cast<size_t>(kind)]; }

std::span<const char* const> attributes_of(LayerKind kind) {
  switch (kind) {
    case LayerKind::conv: return kConv;
    case LayerKind::depthwise: return kDepthwise;
    case LayerKind::matmul: return kMatMul;
    case LayerKind::batch_matmul: return kBatchMatMul;
    case LayerKind::pool: return kPool;
    case LayerKind::softmax:
    case LayerKind::layer_norm: return kRows;
    case LayerKind::mean:
    case LayerKind::add: return kImage;
  }
  TW_UNREACHABLE("bad kind of layer");
}

bool is_size(LayerKind kind, size_t attribute) {
  constexpr std::array<std::string_view, 7> kFew = {"kernel",  "stride", "groups",    "follow",
                                                    "average", "batch",  "transposed"};
  return std::ranges::find(kFew, attributes_of(kind)[attribute]) == kFew.end() ||
         kind == LayerKind::batch_matmul;
}

std::optional<Layer> layer_of(const ParsedTask& task) {
  const Node& node = task.graph.node(task.group.anchor);
  if (task.graph.value(node.output).type.dtype != DType::f32) return std::nullopt;
  if (const auto* conv = get_if<op::Conv>(&node)) return of_conv(task, node, *conv);
  if (const auto* product = get_if<op::MatMul>(&node)) return of_product(task, node, *product);
  if (const auto* softmax = get_if<op::Softmax>(&node))
    return of_rows(task, node, LayerKind::softmax, softmax->axis);
  if (const auto* norm = get_if<op::LayerNorm>(&node))
    return of_rows(task, node, LayerKind::layer_norm, norm->axis);
  const auto x = node.inputs.empty() ? std::nullopt : shape_of(task, node.inputs[0]);
  if (!x || x->size() != 4) return std::nullopt;
  if (const auto* pool = get_if<op::Pool>(&node)) {
    if (!all_equal(pool->kernel) || !all_equal(pool->strides)) return std::nullopt;
    return Layer{LayerKind::pool,
                 {(*x)[0], (*x)[1], (*x)[2], (*x)[3], pool->kernel.front(), pool->strides.front(),
                  pool->kind == PoolKind::average}};
  }
  if (const auto* reduce = get_if<op::Reduce>(&node))
    return reduce->axes == Ints{2, 3} ? std::optional(Layer{LayerKind::mean, *x}) : std::nullopt;
  if (is_binary(&node, BinaryOp::add) && !task.graph.is_constant(node.inputs[1]))
    return Layer{LayerKind::add, *x};
  return std::nullopt;
}

Expected<Graph> graph_of(const Layer& layer) {
  const std::vector<int64_t>& v = layer.values;
  LayerGraph g;
  switch (layer.kind) {
    case LayerKind::conv: return conv_graph(v);
    case LayerKind::depthwise:
      return conv_graph({v[0], v[1], v[2], v[3], v[3], v[4], v[5], v[3], v[6]});
    case LayerKind::matmul:
    case LayerKind::batch_matmul: return product_graph(layer);
    case LayerKind::pool: {
      op::Pool pool;
      pool.kind = v[6] ? PoolKind::average : PoolKind::max;
      pool.kernel = {v[4], v[4]}, pool.strides = {v[5], v[5]}, pool.dilations = {1, 1};
      pool.pads = Ints(4, (v[4] - 1) / 2);
      if (v[2] < v[4] || v[3] < v[4]) return make_error(DiagCode::invalid_argument, "no such pool");
      return g.finish(g.layer(pool, {g.input({v[0], v[1], v[2], v[3]})}));
    }
    case LayerKind::softmax: return g.finish(g.layer(op::Softmax{1}, {g.input({v[0], v[1]})}));
    case LayerKind::layer_norm: {
      const ValueId x = g.input({v[0], v[1]});
      return g.finish(g.layer(op::LayerNorm{1}, {x, g.weights({v[1]}), g.weights({v[1]})}));
    }
    case LayerKind::mean: {
      op::Reduce mean;
      mean.kind = ReduceKind::mean, mean.axes = {2, 3};
      return g.finish(g.layer(mean, {g.input(v)}));
    }
    case LayerKind::add: {  // a convolution in front would take the addition into its group
      const ValueId x = g.bare_input(v);
      return g.finish(g.apply(BinaryOp::add, x, g.bare_input(v), kLayerNode));
    }
  }
  TW_UNREACHABLE("bad kind of layer");
}

const Group* group_of_layer(const Graph& graph, std::span<const Group> groups) {
  for (const Group& group : groups)
    if (std::ranges::any_of(group.nodes,
                            [&](NodeId id) { return graph.node(id).name == kLayerNode; }))
      return &group;
  return nullptr;
}

double flops_of(const Layer& layer) {
  std::vector<double> v(layer.values.begin(), layer.values.end());
  const auto pixels = [&](size_t height, size_t kernel, size_t stride) {
    const auto extent = [&](size_t i) {
      return static_cast<double>(
          out_extent(layer.values[i], layer.values[kernel], layer.values[stride]));
    };
    return extent(height) * extent(height + 1);
  };
  switch (layer.kind) {
    case LayerKind::conv: return 2 * v[0] * pixels(1, 5, 6) * v[4] * v[3] / v[7] * v[5] * v[5];
    case LayerKind::depthwise: return 2 * v[0] * pixels(1, 4, 5) * v[3] * v[4] * v[4];
    case LayerKind::matmul: return 2 * v[0] * v[1] * v[2];
    case LayerKind::batch_matmul: return 2 * v[0] * v[1] * v[2] * v[3];
    case LayerKind::pool: return v[0] * v[1] * pixels(2, 4, 5) * v[4] * v[4];
    case LayerKind::softmax: return 20 * v[0] * v[1];
    case LayerKind::layer_norm: return 8 * v[0] * v[1];
    case LayerKind::mean:
    case LayerKind::add: return v[0] * v[1] * v[2] * v[3];
  }
  TW_UNREACHABLE("bad kind of layer");
}

}  // namespace tw
