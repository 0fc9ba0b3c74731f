#include "frontend/onnx/elements.h"

#include "ir/scalar_ops.h"
#include "ir/storage_types.h"

namespace tw::onnx_import {
namespace {

using Elements = std::optional<std::vector<Expr>>;

std::vector<int64_t> fixed(const Shape& shape) {
  std::vector<int64_t> out;
  for (const Expr& dim : shape) out.push_back(*as_const(dim));
  return out;
}

int64_t product(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t dim : shape) count *= dim;
  return count;
}

// The flat index into a tensor of shape `from` for the flat index `flat` of shape `to`. `from` is
// aligned to the right, and its extents of 1 repeat.
int64_t broadcast_index(int64_t flat, const std::vector<int64_t>& to,
                        const std::vector<int64_t>& from) {
  int64_t index = 0, stride = 1;
  for (size_t k = 0; k < from.size(); ++k) {
    const int64_t extent = to[to.size() - 1 - k], own = from[from.size() - 1 - k];
    const int64_t at = flat % extent;
    flat /= extent;
    if (own != 1) index += at * stride;
    stride *= own;
  }
  return index;
}

bool non_negative(const Expr& e, const Ranges& symbols) {
  const Bounds bounds = constant_bounds(e, symbols);
  return bounds.min && *bounds.min >= 0;
}

bool positive(const Expr& e, const Ranges& symbols) {
  return constant_bounds(e, symbols).min.value_or(0) > 0;
}

std::optional<bool> decided(BinaryOp op, const Expr& a, const Expr& b, const Ranges& symbols) {
  const Expr difference = simplify(a - b, symbols);
  const Bounds bounds = constant_bounds(difference, symbols);
  const auto min = bounds.min, max = bounds.max;
  switch (op) {
    case BinaryOp::lt:
      if (max && *max < 0) return true;
      if (min && *min >= 0) return false;
      return std::nullopt;
    case BinaryOp::le:
      if (max && *max <= 0) return true;
      if (min && *min > 0) return false;
      return std::nullopt;
    case BinaryOp::eq:
    case BinaryOp::ne:
      if (min && max && *min == 0 && *max == 0) return op == BinaryOp::eq;
      if ((min && *min > 0) || (max && *max < 0)) return op == BinaryOp::ne;
      return std::nullopt;
    default: return std::nullopt;  // only comparisons get here
  }
}

std::optional<Expr> apply(BinaryOp op, const Expr& a, const Expr& b, const Ranges& symbols) {
  const std::optional<int64_t> ca = as_const(a), cb = as_const(b);
  switch (op) {
    case BinaryOp::add:
    case BinaryOp::sub:
    case BinaryOp::mul:
    case BinaryOp::min:
    case BinaryOp::max: return simplify(binary(op, a, b), symbols);
    case BinaryOp::div:
      if (!positive(b, symbols) || !non_negative(a, symbols)) return std::nullopt;
      return simplify(floor_div(a, b), symbols);
    case BinaryOp::mod:
      if (!positive(b, symbols) || !non_negative(a, symbols)) return std::nullopt;
      return simplify(floor_mod(a, b), symbols);
    case BinaryOp::floor_div:
    case BinaryOp::floor_mod:
      if (!positive(b, symbols)) return std::nullopt;
      return simplify(binary(op, a, b), symbols);
    case BinaryOp::lt:
    case BinaryOp::le:
    case BinaryOp::eq:
    case BinaryOp::ne: {
      const std::optional<bool> result = decided(op, a, b, symbols);
      return result ? std::optional<Expr>(Expr(*result ? 1 : 0)) : std::nullopt;
    }
    case BinaryOp::logical_and:
      return ca && cb ? std::optional<Expr>(Expr(*ca && *cb ? 1 : 0)) : std::nullopt;
    case BinaryOp::logical_or:
      return ca && cb ? std::optional<Expr>(Expr(*ca || *cb ? 1 : 0)) : std::nullopt;
    case BinaryOp::logical_xor:
      return ca && cb ? std::optional<Expr>(Expr(!*ca != !*cb ? 1 : 0)) : std::nullopt;
    case BinaryOp::pow:
    case BinaryOp::bit_and:
    case BinaryOp::bit_or:
    case BinaryOp::bit_xor:
    case BinaryOp::shl:
    case BinaryOp::shr: return std::nullopt;
  }
  TW_UNREACHABLE("bad operator");
}

// True if the type can hold the expression: it neither leaves the type nor wraps. Numbers larger
// than any size, and differences in unsigned types, are left to the run.
bool stays_in(const Expr& e, DType type, const Ranges& symbols) {
  if (as_const(e)) return true;
  if (e->data) return false;
  if (is_signed_int(type) || type == DType::boolean) {
    const int64_t far = dtype_bits(type) < 64 ? int64_t{1} << 24 : int64_t{1} << 31;
    bool near = true;
    visit(e, [&](const Expr& part) {
      const auto number = as_const(part);
      near = near && !(number && (*number > far || *number < -far));
    });
    if (near) return true;
  }
  Ranges most = symbols;
  for (auto& [symbol, range] : most)
    if (!range.max.defined()) range.max = Expr(int64_t{1} << (dtype_bits(type) < 64 ? 31 : 40));
  const Bounds bounds = constant_bounds(e, most);
  const int64_t highest = type == DType::u64 ? INT64_MAX : highest_of(type);
  return bounds.min && bounds.max && *bounds.min >= lowest_of(type) && *bounds.max <= highest;
}

// One function for each core operator that is followed. The template at the end is for all others.
struct Propagate {
  const std::vector<KnownInput>& in;
  const TensorType& out;
  const Ranges& symbols;
  std::vector<int64_t> shape = fixed(out.shape);
  int64_t count = product(shape);

  bool all_known() const {
    for (const KnownInput& input : in)
      if (!input.elements) return false;
    return true;
  }
  const Expr& at(size_t input, int64_t flat) const {
    return (*in[input].elements)[static_cast<size_t>(
        broadcast_index(flat, shape, fixed(in[input].type->shape)))];
  }

  Elements operator()(const op::Unary& a) const {
    std::vector<Expr> result;
    for (const Expr& x : *in[0].elements) {
      const std::optional<int64_t> value = as_const(x);
      if (a.function == UnaryOp::neg) result.push_back(simplify(-x, symbols));
      else if (a.function == UnaryOp::abs && non_negative(x, symbols)) result.push_back(x);
      else if (a.function == UnaryOp::logical_not && value) result.push_back(*value ? 0 : 1);
      else return std::nullopt;
    }
    return result;
  }
  Elements operator()(const op::Binary& a) const {
    std::vector<Expr> result;
    for (int64_t i = 0; i < count; ++i) {
      std::optional<Expr> e = apply(a.function, at(0, i), at(1, i), symbols);
      if (!e) return std::nullopt;
      result.push_back(*e);
    }
    return result;
  }
  Elements operator()(const op::Select&) const {
    std::vector<Expr> result;
    for (int64_t i = 0; i < count; ++i) {
      const std::optional<int64_t> condition = as_const(at(0, i));
      if (!condition) return std::nullopt;
      result.push_back(at(*condition ? 1 : 2, i));
    }
    return result;
  }
  Elements operator()(const op::Cast& a) const {
    if (is_float(a.to) || a.to == DType::boolean) return std::nullopt;
    std::vector<Expr> result = *in[0].elements;
    for (Expr& e : result) {
      if (const std::optional<int64_t> value = as_const(e))
        e = cast_int(a.to, in[0].type->dtype, *value, a.saturate);
      else if (dtype_bits(a.to) < 32) return std::nullopt;  // extents fit 32 bits by far
    }
    return result;
  }
  Elements operator()(const op::Reshape&) const { return *in[0].elements; }
  Elements operator()(const op::Expand&) const {
    std::vector<Expr> result;
    for (int64_t i = 0; i < count; ++i) result.push_back(at(0, i));
    return result;
  }
  Elements operator()(const op::Concat& a) const {
    int64_t inner = 1, outer = 1;
    for (size_t k = 0; k < shape.size(); ++k)
      (static_cast<int64_t>(k) <= a.axis ? outer : inner) *= shape[k];
    outer = shape[static_cast<size_t>(a.axis)] ? outer / shape[static_cast<size_t>(a.axis)] : 0;
    std::vector<Expr> result;
    for (int64_t o = 0; o < outer; ++o)
      for (const KnownInput& input : in) {
        const int64_t run = fixed(input.type->shape)[static_cast<size_t>(a.axis)] * inner;
        for (int64_t i = 0; i < run; ++i)
          result.push_back((*input.elements)[static_cast<size_t>(o * run + i)]);
      }
    return result;
  }
  Elements operator()(const op::Slice& a) const {
    const std::vector<int64_t> from = fixed(in[0].type->shape);
    std::vector<Expr> result;
    for (int64_t i = 0; i < count; ++i) {
      int64_t rest = i, index = 0, stride = 1;
      for (size_t k = shape.size(); k-- > 0;) {
        const std::optional<int64_t> start = as_const(a.starts[k]);
        if (!start) return std::nullopt;
        index += (*start + a.steps[k] * (rest % shape[k])) * stride;
        rest /= shape[k];
        stride *= from[k];
      }
      if (index < 0 || index >= static_cast<int64_t>(in[0].elements->size())) return std::nullopt;
      result.push_back((*in[0].elements)[static_cast<size_t>(index)]);
    }
    return result;
  }
  Elements operator()(const op::Gather& a) const {
    const std::vector<int64_t> from = fixed(in[0].type->shape);
    const auto axis = static_cast<size_t>(a.axis);
    int64_t inner = 1, outer = 1;
    for (size_t k = 0; k < from.size(); ++k)
      if (k != axis) (k < axis ? outer : inner) *= from[k];
    std::vector<Expr> result;
    for (int64_t o = 0; o < outer; ++o)
      for (const Expr& e : *in[1].elements) {
        const std::optional<int64_t> given = as_const(e);
        if (!given) return std::nullopt;
        const int64_t index = *given < 0 ? *given + from[axis] : *given;
        if (index < 0 || index >= from[axis]) return std::nullopt;
        for (int64_t i = 0; i < inner; ++i)
          result.push_back(
              (*in[0].elements)[static_cast<size_t>((o * from[axis] + index) * inner + i)]);
      }
    return result;
  }
  Elements operator()(const op::Reduce& a) const {
    if (in[0].type->shape.size() != 1 || in[0].elements->empty()) return std::nullopt;
    Expr total = in[0].elements->front();
    for (size_t i = 1; i < in[0].elements->size(); ++i) {
      const Expr& e = (*in[0].elements)[i];
      switch (a.kind) {
        case ReduceKind::sum: total = total + e; break;
        case ReduceKind::prod: total = total * e; break;
        case ReduceKind::max: total = max(total, e); break;
        case ReduceKind::min: total = min(total, e); break;
        case ReduceKind::mean: return std::nullopt;
      }
    }
    return std::vector<Expr>{simplify(total, symbols)};
  }
  template <class Other>
  Elements operator()(const Other&) const {
    return std::nullopt;
  }
};

}  // namespace

std::optional<std::vector<Expr>> propagate(const OpAttrs& attrs,
                                           const std::vector<KnownInput>& inputs,
                                           const TensorType& out, const Ranges& symbols) {
  const Propagate rules{inputs, out, symbols};
  if (!rules.all_known()) return std::nullopt;
  Elements made = std::visit(rules, attrs);
  const bool stay = !made || std::ranges::all_of(*made, [&](const Expr& e) {
    return stays_in(e, out.dtype, symbols);
  });
  return stay ? made : std::nullopt;
}

}  // namespace tw::onnx_import
