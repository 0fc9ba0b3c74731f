#include "frontend/onnx/given_inputs.h"

#include <charconv>
#include <cmath>
#include <numeric>

#include "frontend/onnx/import_table.h"
#include "ir/graph/strings.h"
#include "ir/graph/tensor.h"

namespace tw::onnx_import {
namespace {

Error refused(const OnnxValueInfo& input, const std::string& text) {
  return make_error(DiagCode::invalid_argument, "--inputs: '{0}' {1}", input.name, text);
}

OnnxTensor onnx_tensor(std::string name, Tensor tensor) {
  const auto kept = std::make_shared<const Tensor>(std::move(tensor));
  return {std::move(name), dtype_info(kept->dtype).onnx, kept->shape, {kept, kept->bytes}};
}

OnnxAttribute integer(int64_t value) {
  OnnxAttribute attribute;
  attribute.kind = AttributeKind::integer;
  attribute.integer = value;
  return attribute;
}
OnnxAttribute integers(std::vector<int64_t> values) {
  OnnxAttribute attribute;
  attribute.kind = AttributeKind::integers;
  attribute.integers = std::move(values);
  return attribute;
}
OnnxAttribute text(std::string value) {
  OnnxAttribute attribute;
  attribute.kind = AttributeKind::text;
  attribute.text = std::move(value);
  return attribute;
}

// A chain of nodes that begins at the input.
class Preparation {
 public:
  explicit Preparation(const std::string& input) : input_(input), last_(input) {}

  using Attributes = std::map<std::string, OnnxAttribute, std::less<>>;
  void node(const char* op, Attributes attributes, const std::vector<std::string>& others = {}) {
    OnnxNode& node = graph_.nodes.emplace_back();
    node.op_type = op;
    node.since_version = find_importer_any_version("", op)->last;
    node.inputs = {last_};
    node.inputs.insert(node.inputs.end(), others.begin(), others.end());
    last_ = input_ + ".given." + std::to_string(graph_.nodes.size());
    node.name = last_;
    node.outputs = {last_};
    node.attributes = std::move(attributes);
  }
  std::string constant(Tensor tensor) {
    const std::string name = input_ + ".const." + std::to_string(graph_.initializers.size());
    graph_.initializers.push_back(onnx_tensor(name, std::move(tensor)));
    return name;
  }
  std::string numbers(const std::vector<int64_t>& values) {
    Tensor tensor = Tensor::zeros(DType::i64, {std::ssize(values)});
    for (size_t i = 0; i < values.size(); ++i) tensor.set_int(static_cast<int64_t>(i), values[i]);
    return constant(std::move(tensor));
  }
  void cast(DType to) { node("Cast", {{"to", integer(dtype_info(to).onnx)}}); }

  OnnxGraph finish(const OnnxValueInfo& info) {
    graph_.inputs = {info};
    graph_.outputs = {last_};
    return std::move(graph_);
  }

 private:
  std::string input_, last_;
  OnnxGraph graph_;
};

struct Axes {
  int64_t channels = 1, height = 2, width = 3;
};

class InputPreparation {
 public:
  InputPreparation(const OnnxValueInfo& model, const InputForm& form)
      : model_(model), form_(form), steps_(model.name) {}

  Expected<GivenInput> run() {
    const auto dtype = dtype_from_onnx(model_.element_type);
    if (!dtype || model_.kind != "tensor" || !model_.has_shape)
      return refused(model_, "is no tensor of numbers with a known rank");
    model_dtype_ = *dtype;
    given_dtype_ = form_.dtype.value_or(*dtype);
    given_ = model_;
    given_.element_type = dtype_info(given_dtype_).onnx;
    TW_TRY(look_at_picture());
    TW_TRY(transpose());
    TW_TRY(resize());
    now_ = given_dtype_;
    TW_TRY(bring_channels());
    TW_TRY(scale());
    if (now_ != model_dtype_) steps_.cast(model_dtype_);
    return GivenInput{given_, steps_.finish(given_)};
  }

 private:
  Error look_at_picture() {
    const bool wanted = form_.layout || form_.size || form_.channels != PictureChannels::rgb;
    is_picture_ = model_.dims.size() == 4;
    if (!is_picture_)
      return wanted ? refused(model_, "has " + std::to_string(model_.dims.size()) +
                                          " dimensions: layout, size and channels are for 4")
                    : Error::success();
    std::vector<int64_t> dims;
    for (const OnnxDim& dim : model_.dims) dims.push_back(dim.value);
    layout_ = layout_of(dims);
    if (layout_ == PictureLayout::nhwc) axes_ = {3, 1, 2};
    const int64_t channels = dims[static_cast<size_t>(axes_.channels)];
    if (form_.channels != PictureChannels::rgb && channels != form_.model_channels())
      return refused(model_, "has " + std::to_string(channels) + " channels, 'channels: " +
                                 (form_.channels == PictureChannels::bgr ? "bgr' is for 3"
                                                                         : "gray' is for 1"));
    return Error::success();
  }

  OnnxDim& given_dim(int64_t axis) { return given_.dims[static_cast<size_t>(axis)]; }

  // The interface is the caller's: it has the dims of the model in the caller's order.
  Error transpose() {
    if (is_picture_ && form_.channels == PictureChannels::gray) given_dim(axes_.channels) = {3, ""};
    if (is_picture_ && form_.size) {
      TW_TRY(look_at_size());
      given_dim(axes_.height) = {(*form_.size)[0], ""};
      given_dim(axes_.width) = {(*form_.size)[1], ""};
    }
    if (!form_.layout || *form_.layout == layout_) return Error::success();
    const bool last = *form_.layout == PictureLayout::nhwc;
    const std::vector<OnnxDim> own = given_.dims;
    given_.dims = last ? std::vector<OnnxDim>{own[0], own[2], own[3], own[1]}
                       : std::vector<OnnxDim>{own[0], own[3], own[1], own[2]};
    steps_.node("Transpose", {{"perm", last ? integers({0, 3, 1, 2}) : integers({0, 2, 3, 1})}});
    return Error::success();
  }

  Error look_at_size() {
    for (const int64_t axis : {axes_.height, axes_.width})
      if (model_.dims[static_cast<size_t>(axis)].value < 1)
        return refused(model_,
                       "has a free height or width, which takes any size: leave 'size' out, "
                       "or bind both with --dim");
    return Error::success();
  }

  Error resize() {
    if (!form_.size) return Error::success();
    const int64_t height = model_.dims[static_cast<size_t>(axes_.height)].value,
                  width = model_.dims[static_cast<size_t>(axes_.width)].value;
    const PicturePlace place = place_of(form_, (*form_.size)[0], (*form_.size)[1], height, width);
    if (place.height != (*form_.size)[0] || place.width != (*form_.size)[1])
      steps_.node("Resize",
                  {{"mode", text("linear")}, {"axes", integers({axes_.height, axes_.width})}},
                  {"", "", steps_.numbers({place.height, place.width})});
    if (place.height < height || place.width < width) {
      Tensor fill = Tensor::zeros(given_dtype_, {});
      fill.set(0, form_.fill);
      steps_.node("Pad", {},
                  {steps_.numbers({place.top, place.left, height - place.height - place.top,
                                   width - place.width - place.left}),
                   steps_.constant(std::move(fill)), steps_.numbers({axes_.height, axes_.width})});
    } else if (place.height > height || place.width > width) {
      const int64_t top = -place.top, left = -place.left;
      steps_.node("Slice", {},
                  {steps_.numbers({top, left}), steps_.numbers({top + height, left + width}),
                   steps_.numbers({axes_.height, axes_.width})});
    }
    return Error::success();
  }

  // Casts to f32 before the first step that computes.
  void to_float() {
    if (now_ != DType::f32) steps_.cast(DType::f32);
    now_ = DType::f32;
  }

  Error bring_channels() {
    if (form_.channels == PictureChannels::bgr) {
      const std::string axis = steps_.numbers({axes_.channels});
      steps_.node("Slice", {},
                  {steps_.numbers({-1}), steps_.numbers({INT64_MIN}), axis, steps_.numbers({-1})});
    } else if (form_.channels == PictureChannels::gray) {
      to_float();
      steps_.node("Mul", {}, {by_channel({0.299, 0.587, 0.114})});
      steps_.node("ReduceSum", {{"keepdims", integer(1)}}, {steps_.numbers({axes_.channels})});
      if (!is_float(given_dtype_)) steps_.node("Round", {});
    }
    return Error::success();
  }

  // A constant of one number, or of one for each channel.
  std::string by_channel(const std::vector<double>& values) {
    std::vector<int64_t> shape;
    if (values.size() > 1) {
      shape.assign(4, 1);
      shape[static_cast<size_t>(axes_.channels)] = std::ssize(values);
    }
    Tensor tensor = Tensor::zeros(DType::f32, shape);
    for (size_t i = 0; i < values.size(); ++i) tensor.set(static_cast<int64_t>(i), values[i]);
    return steps_.constant(std::move(tensor));
  }

  Error scale() {
    size_t count = 1;
    for (const auto* list : {&form_.mean, &form_.scale, &form_.std}) {
      if (list->size() == 1) continue;
      count = list->size();
      if (!is_picture_ ||
          model_.dims[static_cast<size_t>(axes_.channels)].value != static_cast<int64_t>(count))
        return refused(model_, "has no " + std::to_string(count) +
                                   " channels, and so many numbers in mean, scale or std");
    }
    std::vector<double> factors(count), offsets(count);
    for (size_t i = 0; i < count; ++i) factors[i] = form_.factor(i), offsets[i] = form_.offset(i);
    const auto differs = [](double from) { return [from](double v) { return v != from; }; };
    if (std::ranges::any_of(factors, differs(1))) {
      to_float();
      steps_.node("Mul", {}, {by_channel(factors)});
    }
    if (std::ranges::any_of(offsets, differs(0))) {
      to_float();
      steps_.node("Sub", {}, {by_channel(offsets)});
    }
    return Error::success();
  }

  const OnnxValueInfo& model_;
  const InputForm& form_;
  Preparation steps_;
  OnnxValueInfo given_;
  bool is_picture_ = false;
  PictureLayout layout_ = PictureLayout::nchw;  // layout of the model
  Axes axes_;
  DType model_dtype_{}, given_dtype_{}, now_{};
};

bool read_number(const std::string& text, DType dtype, Tensor& tensor, int64_t at) {
  const char *begin = text.data(), *end = begin + text.size();
  if (is_float(dtype)) {
    double value = 0;
    const auto parsed = std::from_chars(begin, end, value);
    tensor.set(at, value);
    return parsed.ec == std::errc() && parsed.ptr == end;
  }
  if (dtype == DType::boolean && (text == "true" || text == "false")) {
    tensor.set_int(at, text == "true");
    return true;
  }
  int64_t value = 0;
  const auto parsed = std::from_chars(begin, end, value);
  tensor.set_int(at, value);
  return parsed.ec == std::errc() && parsed.ptr == end && tensor.int_at(at) == value;
}

}  // namespace

Expected<OnnxTensor> input_value(const OnnxValueInfo& input,
                                 const std::vector<std::string>& texts) {
  const auto refuse = [&](const std::string& what) {
    return make_error(DiagCode::invalid_argument, "--const: input '{0}' {1}", input.name, what);
  };
  const auto dtype = dtype_from_onnx(input.element_type);
  if (!dtype || input.kind != "tensor" || !input.has_shape)
    return refuse("is no tensor of numbers with a known rank");
  const auto count = static_cast<int64_t>(texts.size());
  std::vector<int64_t> shape;
  int64_t product = 1;
  for (const OnnxDim& dim : input.dims) {
    const bool is_vector = input.dims.size() == 1;
    if (dim.value < 0 && !is_vector && count != 1)
      return refuse("has free dimensions: only a scalar, or a vector, or one value binds it");
    shape.push_back(dim.value >= 0 ? dim.value : is_vector ? count : 1);
    product = product > count ? product : product * shape.back();
  }
  if (product != count)
    return refuse(llvm::formatv("takes {0} values, here are {1}",
                                product > count ? "more" : std::to_string(product), count)
                      .str());
  if (*dtype == DType::string) {
    std::optional<std::string> packed = packed_strings(texts);
    if (!packed) return refuse("has a string with a zero byte");
    const auto owner = std::make_shared<const std::string>(std::move(*packed));
    return OnnxTensor{
        input.name, input.element_type, shape, {owner, std::as_bytes(std::span(*owner))}};
  }
  Tensor tensor = Tensor::zeros(*dtype, shape);
  for (int64_t i = 0; i < count; ++i)
    if (!read_number(texts[static_cast<size_t>(i)], *dtype, tensor, i))
      return refuse(llvm::formatv("is of {0}, '{1}' is no such number", dtype_name(*dtype),
                                  texts[static_cast<size_t>(i)])
                        .str());
  return onnx_tensor(input.name, std::move(tensor));
}

Expected<GivenInput> given_input(const OnnxValueInfo& input, const InputForm& form) {
  return InputPreparation(input, form).run();
}

Error check_given(const GivenInputs& given, const std::vector<OnnxValueInfo>& inputs) {
  std::vector<Diag> problems;
  std::string names;
  for (const OnnxValueInfo& input : inputs) names += (names.empty() ? "" : ", ") + input.name;
  const auto check = [&](const char* flag, const std::string& name) {
    if (std::ranges::find(inputs, name, &OnnxValueInfo::name) == inputs.end())
      problems.push_back(
          {DiagCode::invalid_argument,
           std::string(flag) + ": the model has no input '" + name + "'; its inputs are " + names,
           {},
           {}});
  };
  for (const auto& [name, form] : given.forms.of) check("--inputs", name);
  for (const auto& [name, value] : given.values) {
    check("--const", name);
    if (given.forms.of.count(name))
      problems.push_back({DiagCode::invalid_argument,
                          "input '" + name + "' is bound by --const and has a form in --inputs",
                          {},
                          {}});
  }
  return make_error(std::move(problems));
}

}  // namespace tw::onnx_import
