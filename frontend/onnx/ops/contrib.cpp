// Fused operators of com.microsoft in optimized transformers: products, convolutions and norms with
// their neighbours.
#include <cmath>

#include "frontend/onnx/node_import.h"
#include "frontend/onnx/ops/importers.h"

namespace tw::onnx_import {
namespace {

Val add_if(NodeImport& n, Val x, size_t input) {
  return n.has(input) ? n.add(x, n.cast(n.in(input), n.dtype(x))) : x;
}

// Applies the activation `name`. Operators have different names for the attributes alpha and beta.
Val activated(NodeImport& n, Val x, const std::string& name, std::optional<double> alpha,
              std::optional<double> beta) {
  if (name.empty() || name == "Identity") return x;
  if (name == "Relu") return n.max(n.scalar(0, x), x);
  if (name == "Tanh") return n.unary(UnaryOp::tanh, x);
  if (name == "Sigmoid") return n.unary(UnaryOp::sigmoid, x);
  if (name == "LeakyRelu")
    return n.select(n.less(x, n.scalar(0, x)), n.mul(x, n.scalar(alpha.value_or(0.01f), x)), x);
  if (name == "HardSigmoid") {
    const Val line = n.add(n.mul(x, n.scalar(alpha.value_or(0.2f), x)),
                           n.scalar(beta.value_or(0.5), x));
    return n.min(n.scalar(1, x), n.max(n.scalar(0, x), line));
  }
  if (name == "Clip") {
    if (alpha) x = n.max(n.scalar(*alpha, x), x);
    return beta ? n.min(n.scalar(*beta, x), x) : x;
  }
  n.fail("activation " + name, "use Relu, Tanh, Sigmoid, LeakyRelu, HardSigmoid or Clip");
  return {};
}

std::optional<double> optional_real(NodeImport& n, const char* name) {
  return n.has_attribute(name) ? std::optional<double>(n.real(name, 0)) : std::nullopt;
}

// Moves the first axis to the place before the last: [M, batch..., K] to [batch..., M, K].
Val batches_first(NodeImport& n, Val x) {
  Ints perm;
  for (int64_t i = 1; i + 1 < n.rank(x); ++i) perm.push_back(i);
  perm.push_back(0);
  perm.push_back(n.rank(x) - 1);
  return n.transpose(x, perm);
}

Val turned(NodeImport& n, Val x) {
  Ints perm;
  for (int64_t i = 0; i < n.rank(x); ++i) perm.push_back(i);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return n.transpose(x, perm);
}

}  // namespace

// alpha A' B', with A' and B' transposed as the attributes say
void import_fused_matmul(NodeImport& n) {
  Val a = n.in(0), b = n.in(1);
  if (n.failed()) return;
  if (n.rank(a) > 2 && n.integer("transBatchA", 0) != 0) a = batches_first(n, a);
  if (n.rank(b) > 2 && n.integer("transBatchB", 0) != 0) b = batches_first(n, b);
  if (n.rank(a) > 1 && n.integer("transA", 0) != 0) a = turned(n, a);
  if (n.rank(b) > 1 && n.integer("transB", 0) != 0) b = turned(n, b);
  if (n.failed()) return;
  Val y = matrix_product(n, a, b);
  if (const double alpha = n.real("alpha", 1); alpha != 1) y = n.mul(y, n.scalar(alpha, y));
  n.set(activated(n, y, n.text("activation", ""), optional_real(n, "activation_alpha"),
                  optional_real(n, "activation_beta")));
}

void import_fused_gemm(NodeImport& n) {
  const Val y = general_product(n);
  n.set(activated(n, y, n.text("activation", ""), optional_real(n, "activation_alpha"),
                  optional_real(n, "activation_beta")));
}

// Inputs: x, w, optional bias, optional z, which is added before the activation
void import_fused_conv(NodeImport& n) {
  const Val x = n.in(0), w = n.in(1);
  const Ints kernel = n.failed() ? Ints() : kernel_of(n, x, w);
  if (n.failed()) return;
  const Window window = read_window(n, x, kernel);
  std::vector<Val> inputs = {x, w};
  if (n.has(2)) inputs.push_back(n.in(2));
  Val y = n.emit(op::Conv{window.strides, window.dilations, window.pads, n.integer("group", 1)},
                 inputs);
  if (n.has(3)) y = n.add(y, n.in(3));
  const std::vector<float> given = n.reals("activation_params").value_or(std::vector<float>());
  const auto parameter = [&](size_t i) {
    return i < given.size() ? std::optional<double>(given[i]) : std::nullopt;
  };
  n.set(activated(n, y, n.text("activation", ""), parameter(0), parameter(1)));
}

// Gelu of input 0 plus an optional bias; `approximate` uses tanh.
void import_bias_gelu(NodeImport& n, bool approximate) {
  const Val x = n.in(0);
  if (!n.failed()) n.set(gelu(n, add_if(n, x, 1), approximate));
}

void import_quick_gelu(NodeImport& n) {
  const Val x = n.in(0);
  n.set(n.mul(x, n.unary(UnaryOp::sigmoid, n.mul(x, n.scalar(n.real("alpha", 1.702f), x)))));
}

// The left half of x + bias, times Gelu of the right half.
void import_bias_split_gelu(NodeImport& n) {
  const Val x = n.in(0), bias = n.in(1);
  if (n.failed()) return;
  const int64_t last = n.rank(x) - 1, columns = n.need_static_dim(x, last, "BiasSplitGelu");
  if (last < 0 || columns % 2 != 0)
    return n.invalid(llvm::formatv("{0} columns cannot be halved", columns).str());
  const Val sum = n.add(x, bias);
  n.set(n.mul(n.slice(sum, last, 0, columns / 2),
              gelu(n, n.slice(sum, last, columns / 2, columns / 2), false)));
}

void import_bias_add(NodeImport& n) {
  const Val x = n.in(0), bias = n.in(1), skip = n.in(2);
  if (!n.failed()) n.set(n.add(n.add(x, bias), skip));
}

// softmax(data + bias) over all axes from `axis` on.
void import_bias_softmax(NodeImport& n) {
  const Val x = n.in(0);
  Val bias = n.in(1);
  const int64_t rank = n.rank(x), axis = n.axis(n.integer("axis", 1), rank);
  if (n.failed()) return;
  if (n.integer("is_inner_broadcast", 1) != 0 && n.rank(bias) != rank)
    return n.fail("a bias of another rank", "give the bias as many axes as the data");
  const Val sum = n.add(x, bias);
  Expr rows = 1, columns = 1;
  for (int64_t i = 0; i < rank; ++i)
    (i < axis ? rows : columns) = (i < axis ? rows : columns) * n.dim(x, i);
  n.set(n.reshape(n.emit(op::Softmax{1, false}, {n.reshape(sum, {rows, columns})}), n.shape(x)));
}

// Inputs: input, skip, gamma, [beta,] bias. Outputs: output, mean, 1 / deviation, input + skip +
// bias. If `centred`, the norm is LayerNormalization's, with beta.
void import_skip_layer_norm(NodeImport& n, bool centred) {
  const Val x = n.in(0), skip = n.in(1), gamma = n.in(2);
  if (n.failed()) return;
  const Val sum = add_if(n, n.add(x, skip), centred ? 4 : 3), beta = centred ? n.maybe(3) : Val{};
  if (!n.failed())
    layer_norm(n, sum, gamma, beta, n.rank(sum) - 1, n.real("epsilon", 1e-12f), centred);
  n.set(3, sum);
}

// Inputs: input_ids, segment_ids, word, position and segment embeddings, gamma, beta, mask,
// position_ids. Outputs: output, mask_index, sum
void import_embed_layer_norm(NodeImport& n) {
  const Val ids = n.in(0), word = n.in(2), position = n.in(3), gamma = n.in(5), beta = n.in(6);
  if (n.failed()) return;
  if (n.rank(ids) != 2 || n.rank(word) != 2 || n.rank(position) != 2)
    return n.invalid("ids and embeddings must have two axes");
  Val places;
  if (n.has(8)) places = n.emit(op::Gather{0}, {position, n.in(8)});
  else places = n.slice(position, 0, 0, n.dim(ids, 1));
  Val sum = n.add(n.emit(op::Gather{0}, {word, ids}), places);
  if (n.has(1) && n.has(4)) sum = n.add(sum, n.emit(op::Gather{0}, {n.in(4), n.in(1)}));
  layer_norm(n, sum, gamma, beta, 2, n.real("epsilon", 1e-12f), true);
  if (n.wanted(1)) {
    const Val none = n.expand(n.scalar(0, DType::i32), {n.dim(ids, 0)});
    const auto ones = [&](Val mask) {
      return n.cast(n.binary(BinaryOp::eq, mask, n.scalar(1, mask)), DType::i32);
    };
    n.set(1, n.has(7) ? n.reduce(ReduceKind::sum, ones(n.in(7)), {1}, false) : none);
  }
  n.set(2, sum);
}

}  // namespace tw::onnx_import
