// The table of the runtime library's functions, and the inference and evaluation of op::Extern
#include "ir/graph/externs.h"

#include <memory>

#include "ir/graph/externs/common.h"
#include "ir/graph/strings.h"

namespace tw {
namespace {

constexpr ExternInfo kFunctions[] = {
    {ExternFunction::bit_cast, "bit_cast", 1, true, -1, infer_bit_cast, tw_op_bit_cast},
    {ExternFunction::class_probabilities, "class_probabilities", 2, true, -1,
     infer_class_probabilities, tw_op_class_probabilities},
    {ExternFunction::compress, "compress", 2, true, -1, infer_compress, tw_op_compress},
    {ExternFunction::det, "det", 2, true, -1, infer_det, tw_op_det},
    {ExternFunction::non_max_suppression, "non_max_suppression", 3, true, -1,
     infer_non_max_suppression, tw_op_non_max_suppression},
    {ExternFunction::nonzero, "nonzero", 2, true, -1, infer_nonzero, tw_op_nonzero},
    {ExternFunction::random_bits, "random_bits", 1, false, -1, infer_random_bits,
     tw_op_random_bits},
    {ExternFunction::refuse, "refuse", 1, false, -1, infer_refuse, tw_op_refuse},
    {ExternFunction::scatter_elements, "scatter_elements", 1, true, 0, infer_scatter_elements,
     tw_op_scatter_elements},
    {ExternFunction::scatter_nd, "scatter_nd", 1, true, 0, infer_scatter_nd, tw_op_scatter_nd},
    {ExternFunction::string_concat, "string_concat", 1, false, -1, infer_string_concat,
     tw_op_string_concat},
    {ExternFunction::string_const, "string_const", 1, false, -1, infer_string_const,
     tw_op_string_const},
    {ExternFunction::string_equal, "string_equal", 1, false, -1, infer_string_equal,
     tw_op_string_equal},
    {ExternFunction::string_find, "string_find", 1, false, -1, infer_string_find,
     tw_op_string_find},
    {ExternFunction::string_match, "string_match", 1, false, -1, infer_string_match,
     tw_op_string_match},
    {ExternFunction::string_normalize, "string_normalize", 2, false, -1, infer_string_normalize,
     tw_op_string_normalize},
    {ExternFunction::string_parts, "string_parts", 2, false, -1, infer_string_parts,
     tw_op_string_parts},
    {ExternFunction::string_split, "string_split", 1, false, -1, infer_string_split,
     tw_op_string_split},
    {ExternFunction::string_token_count, "string_token_count", 1, false, -1,
     infer_string_token_count, tw_op_string_token_count},
    {ExternFunction::string_tokens, "string_tokens", 1, false, -1, infer_string_tokens,
     tw_op_string_tokens},
    {ExternFunction::tensor_scatter, "tensor_scatter", 1, true, 0, infer_tensor_scatter,
     tw_op_tensor_scatter},
    {ExternFunction::topk, "topk", 3, true, -1, infer_topk, tw_op_topk},
    {ExternFunction::tree_ensemble, "tree_ensemble", 2, true, -1, infer_tree_ensemble,
     tw_op_tree_ensemble},
    {ExternFunction::unique, "unique", 6, true, -1, infer_unique, tw_op_unique},
};
static_assert(std::size(kFunctions) == kExternCount, "every function has a row");
consteval bool in_order() {
  for (size_t i = 0; i < kExternCount; ++i)
    if (static_cast<size_t>(kFunctions[i].function) != i) return false;
  return true;
}
static_assert(in_order(), "rows are in the order of ExternFunction");

// Memory for the strings that a function makes, until they are interned
struct StringMemory : tw_strings {
  StringMemory() : tw_strings{more_of, nullptr, 0, this} {}
  static int32_t more_of(tw_strings* s, uint64_t bytes) {
    constexpr uint64_t kBlock = 1 << 16, kMost = uint64_t{1} << 32;
    auto& own = *static_cast<StringMemory*>(s->block);
    bytes = std::max(bytes, kBlock);
    if (own.bytes_ + bytes > kMost) return 0;
    own.bytes_ += bytes;
    s->at = own.blocks_.emplace_back(std::make_unique<char[]>(bytes)).get();
    s->left = bytes;
    return 1;
  }

 private:
  std::vector<std::unique_ptr<char[]>> blocks_;
  uint64_t bytes_ = 0;
};

// True: the function works on strings or moves elements.
bool takes_strings(ExternFunction f) {
  using enum ExternFunction;
  return f == compress || f == scatter_elements || f == scatter_nd || f == tensor_scatter ||
         (f >= ExternFunction::string_concat && f <= ExternFunction::string_tokens);
}

tw_view view_of(const Tensor* tensor, void* data) {
  if (!tensor) return {nullptr, nullptr, -1, 0};
  return {data, tensor->shape.data(), static_cast<int32_t>(tensor->shape.size()),
          static_cast<int32_t>(dtype_info(tensor->dtype).onnx)};
}

}  // namespace

const ExternInfo& extern_info(ExternFunction function) {
  return kFunctions[static_cast<size_t>(function)];
}

Expected<std::vector<TensorType>> infer_extern(const OpAttrs& attrs, const Types& inputs) {
  const op::Extern& op = std::get<op::Extern>(attrs);
  const ExternInfo& info = extern_info(op.function);
  for (const Expr& dim : op.dims) TW_TRY(check_dim_expr(dim));
  for (size_t i = 0; i < inputs.size() && !takes_strings(op.function); ++i)
    if (inputs[i] && inputs[i]->dtype == DType::string)
      return make_error(DiagCode::unsupported, "{0}: input {1} is string, expected numbers",
                        info.name, i);
  Expected<std::vector<TensorType>> outs = info.infer(op, inputs);
  if (!outs)
    return llvm::handleErrors(outs.takeError(), [&](std::unique_ptr<DiagError> error) -> Error {
      for (Diag& diag : error->diags) diag.message = std::string(info.name) + ": " + diag.message;
      return Error(std::move(error));
    });
  TW_CHECK(outs->size() == static_cast<size_t>(info.outputs), "{0} has {1} outputs, not {2}",
           info.name, info.outputs, outs->size());
  return outs;
}

// Runs the function itself, compiled for this machine.
Expected<std::vector<Tensor>> evaluate_extern(const OpAttrs& attrs,
                                              const std::vector<TensorType>& outs,
                                              const Tensors& inputs) {
  const op::Extern& op = std::get<op::Extern>(attrs);
  std::vector<Tensor> made;
  std::vector<tw_view> in, out;
  for (const Tensor* tensor : inputs)
    in.push_back(view_of(tensor, tensor ? const_cast<std::byte*>(tensor->bytes.data()) : nullptr));
  for (const TensorType& type : outs)
    made.push_back(Tensor::zeros(type.dtype, extents(type.shape)));
  for (Tensor& tensor : made) out.push_back(view_of(&tensor, tensor.bytes.data()));
  char text[256] = "";
  tw_text error = {text, 0, sizeof text};
  tw_op_args args = {};
  args.in = in.data(), args.in_count = static_cast<int32_t>(in.size());
  args.out = out.data(), args.out_count = static_cast<int32_t>(out.size());
  args.ints = op.ints.data(), args.int_count = static_cast<int32_t>(op.ints.size());
  args.reals = op.reals.data(), args.real_count = static_cast<int32_t>(op.reals.size());
  args.error = &error;
  StringMemory strings;
  args.strings = &strings;
  if (extern_info(op.function).run(&args) == TW_OK) {
    for (Tensor& tensor : made) intern_strings(tensor);
    return made;
  }
  return make_error(DiagCode::invalid_argument, "{0}", text);
}

Error check_inputs(const Types& inputs, size_t required, size_t most) {
  if (inputs.size() < required || inputs.size() > most)
    return make_error(DiagCode::invalid_model, "{0} inputs, expected {1} to {2}", inputs.size(),
                      required, most);
  for (size_t i = 0; i < required; ++i)
    if (!inputs[i]) return make_error(DiagCode::invalid_model, "input {0} is absent", i);
  return Error::success();
}

Error check_counts(const op::Extern& attrs, size_t ints, size_t reals, size_t dims) {
  if (attrs.ints.size() == ints && attrs.reals.size() == reals && attrs.dims.size() == dims)
    return Error::success();
  return make_error(DiagCode::invalid_model,
                    "{0} ints, {1} reals and {2} dims, expected {3}, {4} and {5}",
                    attrs.ints.size(), attrs.reals.size(), attrs.dims.size(), ints, reals, dims);
}

Expected<size_t> axis_entry(const op::Extern& attrs, size_t index, size_t rank) {
  const int64_t axis = attrs.ints[index];
  if (axis >= 0 && axis < static_cast<int64_t>(rank)) return static_cast<size_t>(axis);
  return make_error(DiagCode::invalid_model, "axis {0} of a tensor of rank {1}", axis, rank);
}

Error check_choice(const op::Extern& attrs, size_t index, int64_t count, const char* what) {
  if (attrs.ints[index] >= 0 && attrs.ints[index] < count) return Error::success();
  return make_error(DiagCode::invalid_model, "{0} is {1}, expected 0 to {2}", what,
                    attrs.ints[index], count - 1);
}

TensorType scratch(const Expr& words) { return {DType::i64, {simplify_dim(words)}, {}}; }

}  // namespace tw
