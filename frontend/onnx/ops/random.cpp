// Importers of random tensors. The generator of the runtime library makes bits, and core operators
// shape them. With the same seed every context has the same sequence of runs; each run continues
// from the one before. A node without a seed makes one from its name, so that a model always
// compiles to the same bytes.
#include <bit>
#include <cmath>

#include "frontend/onnx/node_import.h"
#include "frontend/onnx/ops/importers.h"
#include "ir/graph/externs.h"

namespace tw::onnx_import {
namespace {

int64_t seed_of(NodeImport& n) {
  // Dropout has an integer as its seed, other operators a float
  if (n.has_attribute("seed") &&
      n.node.attributes.find("seed")->second.kind == AttributeKind::integer)
    return n.integer("seed", 0);
  if (n.has_attribute("seed")) return std::bit_cast<int64_t>(n.real("seed", 0));
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (char c : n.node.outputs[0] + "/" + n.node.name)
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return static_cast<int64_t>(hash);
}

Val bits(NodeImport& n, Shape shape) {
  return n.emit_extern(ExternFunction::random_bits, {seed_of(n)}, {}, {}, std::move(shape))[0];
}

// The middles of 2^23 equal parts of (0, 1), as f32.
Val uniform(NodeImport& n, Val words) {
  const Val high = n.cast(n.binary(BinaryOp::shr, words, n.scalar(9, DType::u32)), DType::i32);
  const double part = std::ldexp(1.0, -23);
  return n.add(n.mul(n.cast(high, DType::f32), n.scalar(part, DType::f32)),
               n.scalar(part / 2, DType::f32));
}

// Box and Muller: sqrt(-2 log u) cos(2 pi v)
Val normal(NodeImport& n, const Shape& shape) {
  Shape pairs = shape;
  pairs.insert(pairs.begin(), Expr(2));
  const Val both = uniform(n, bits(n, std::move(pairs)));
  if (n.failed()) return {};
  const Val u = n.reshape(n.slice(both, 0, 0, 1), shape),
            v = n.reshape(n.slice(both, 0, 1, 1), shape);
  const Val radius = n.unary(UnaryOp::sqrt,
                             n.mul(n.unary(UnaryOp::log, u), n.scalar(-2, DType::f32)));
  return n.mul(radius, n.unary(UnaryOp::cos, n.mul(v, n.scalar(2 * M_PI, DType::f32))));
}

DType dtype_of(NodeImport& n, DType missing) {
  if (!n.has_attribute("dtype")) return missing;
  const int64_t given = n.integer("dtype", 0);
  if (const auto dtype = given >= 0 && given < 1024 ? dtype_from_onnx(static_cast<int>(given))
                                                    : std::nullopt)
    return *dtype;
  n.fail("dtype " + element_type_name(static_cast<int>(given)));
  return missing;
}

Shape shape_attribute(NodeImport& n) {
  Shape shape;
  for (int64_t extent : n.integers("shape").value_or(Ints())) {
    if (extent < 0) n.invalid("the shape has a negative entry");
    shape.emplace_back(extent);
  }
  return shape;
}

}  // namespace

// Imports RandomNormal and RandomUniform, with or without the shape of an input.
void import_random(NodeImport& n, Random kind) {
  const bool like = kind == Random::normal_like || kind == Random::uniform_like;
  const Val x = like ? n.in(0) : Val{};
  const DType dtype = dtype_of(n, like && !n.failed() ? n.dtype(x) : DType::f32);
  const Shape shape = like ? n.shape(x) : shape_attribute(n);
  if (n.failed()) return;
  if (kind == Random::normal || kind == Random::normal_like) {
    const Val z = normal(n, shape);
    return n.set(n.cast(n.add(n.mul(z, n.scalar(n.real("scale", 1), DType::f32)),
                              n.scalar(n.real("mean", 0), DType::f32)),
                        dtype));
  }
  const double low = n.real("low", 0), high = n.real("high", 1);
  n.set(n.cast(n.add(n.mul(uniform(n, bits(n, shape)), n.scalar(high - low, DType::f32)),
                     n.scalar(low, DType::f32)),
               dtype));
}

// 1 where a uniform number is below the probability.
void import_bernoulli(NodeImport& n) {
  const Val p = n.in(0);
  if (n.failed()) return;
  const DType dtype = dtype_of(n, n.dtype(p));
  n.set(n.cast(n.less(uniform(n, bits(n, n.shape(p))), n.cast(p, DType::f32)), dtype));
}

// The class whose logarithm plus Gumbel noise is largest: classes [batch, c] -> samples [batch, s].
void import_multinomial(NodeImport& n) {
  const Val x = n.in(0);
  if (n.failed()) return;
  if (n.rank(x) != 2) return n.invalid("the logarithms of probabilities have two axes");
  const int64_t samples = n.integer("sample_size", 1);
  if (samples < 1 || samples > 1 << 20)
    return n.invalid(llvm::formatv("sample_size is {0}, expected 1 to 2^20", samples).str());
  const DType dtype = dtype_of(n, DType::i32);
  const Val u = uniform(n, bits(n, {n.dim(x, 0), Expr(samples), n.dim(x, 1)}));
  const Val noise = n.unary(UnaryOp::neg,
                            n.unary(UnaryOp::log, n.unary(UnaryOp::neg, n.unary(UnaryOp::log, u))));
  const Val scores = n.add(n.reshape(n.cast(x, DType::f32), {n.dim(x, 0), Expr(1), n.dim(x, 1)}),
                           noise);
  n.set(
      n.cast(n.emit(op::ArgReduce{.smallest = false, .axis = 2, .keep = false}, {scores}), dtype));
}

// Outside of training, the input itself. In training, elements whose uniform number is below the
// ratio become 0, and the rest grow by 1 / (1 - ratio).
void import_dropout(NodeImport& n) {
  const Val x = n.in(0);
  const auto training = n.has(2) ? n.known(n.in(2)) : std::vector<Expr>{Expr(0)};
  const auto known = training && training->size() == 1 ? as_const(training->front()) : std::nullopt;
  if (n.failed()) return;
  if (known == 0) {
    n.set(x);
    const DType mask = n.version() < 10 ? n.dtype(x) : DType::boolean;
    if (n.wanted(1)) n.set(1, n.expand(n.scalar(1, mask), n.shape(x)));
    return;
  }
  const Val ratio = n.has(1) ? n.reshape(n.cast(n.in(1), DType::f32), {})
                             : n.scalar(0.5, DType::f32);
  const Val one = n.scalar(1, DType::f32), trains = n.reshape(n.cast(n.in(2), DType::boolean), {});
  const Val hit = n.binary(BinaryOp::logical_and, trains,
                           n.less(uniform(n, bits(n, n.shape(x))), ratio));
  const Val factor = n.select(trains, n.div(one, n.sub(one, ratio)), one);
  const DType wide = n.failed() || n.dtype(x) != DType::f64 ? DType::f32 : DType::f64;
  n.set(n.cast(n.select(hit, n.scalar(0, wide), n.mul(n.cast(x, wide), n.cast(factor, wide))),
               n.dtype(x)));
  if (n.wanted(1)) n.set(1, n.unary(UnaryOp::logical_not, hit));
}

}  // namespace tw::onnx_import
