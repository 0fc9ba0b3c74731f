#include "driver/run/tensors.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "driver/run/npz.h"
#include "driver/run/pictures.h"
#include "frontend/frontend.h"
#include "ir/dim_names.h"
#include "ir/graph/npy.h"
#include "ir/graph/strings.h"
#include "ir/storage_types.h"
#include "packager/output_file.h"
#include "support/regular_file.h"

namespace tw {
namespace {

// Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators (2014)
uint64_t split_mix(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::string names_of(const std::vector<TensorSpec>& specs) {
  std::string text;
  for (const TensorSpec& s : specs) text += (text.empty() ? "" : ", ") + s.name;
  return text;
}

std::optional<size_t> find_spec(const std::vector<TensorSpec>& specs, std::string_view name) {
  for (size_t i = 0; i < specs.size(); ++i)
    if (specs[i].name == name) return i;
  return std::nullopt;
}

Expected<std::map<std::string, Tensor>> read_npz(const std::string& path) {
  TW_ASSIGN(const auto buffer, regular_file(path));
  const char* start = buffer->getBufferStart();
  return parse_npz({reinterpret_cast<const std::byte*>(start), buffer->getBufferSize()}, path);
}

// Files that are a tensor's elements and nothing else.
bool is_raw(const std::string& path) { return path.ends_with(".raw") || path.ends_with(".bin"); }

void visit_symbols(const TensorSpec& spec, const std::function<void(const std::string&)>& fn) {
  for (const Expr& dim : spec.dims)
    visit(dim, [&](const Expr& e) {
      if (const std::string* name = var_name(e)) fn(*name);
    });
}

// The shape of an input that no file tells
Expected<std::vector<int64_t>> shape_by(const TensorSpec& spec, const Symbols& symbols) {
  std::vector<int64_t> shape;
  for (const Expr& dim : spec.dims) {
    if (!dim.defined())
      return make_error(DiagCode::invalid_argument,
                        "input '{0}' has a computed dimension: it needs a .npy or .pb file",
                        spec.name);
    shape.push_back(
        eval_int(dim, [&](std::string_view name) { return symbols.at(std::string(name)); }));
  }
  TW_TRY(check_countable("input '" + spec.name + "'", spec.dtype, shape));
  return shape;
}

Expected<Tensor> read_raw(const TensorSpec& spec, const std::string& path, const Symbols& symbols) {
  if (spec.dtype == DType::string)
    return make_error(DiagCode::invalid_argument,
                      "'{0}': input '{1}' is of strings, which .npy and .pb files hold", path,
                      spec.name);
  TW_ASSIGN(std::vector<int64_t> shape, shape_by(spec, symbols));
  TW_ASSIGN(const auto buffer, regular_file(path));
  const int64_t bytes = element_count(shape) * dtype_bytes(spec.dtype);
  if (static_cast<uint64_t>(bytes) != buffer->getBufferSize())
    return make_error(
        DiagCode::invalid_argument, "'{0}' has {1} bytes, and input '{2}', {3}{4}, takes {5}", path,
        buffer->getBufferSize(), spec.name, dtype_name(spec.dtype), shape_text(shape), bytes);
  const auto* data = reinterpret_cast<const std::byte*>(buffer->getBufferStart());
  return Tensor{spec.dtype, std::move(shape), {data, data + bytes}};
}

// Collects the tensors that files give, by input.
class InputReader {
 public:
  InputReader(const std::vector<TensorSpec>& specs, const InputForms& forms)
      : specs_(specs), forms_(forms), found_(specs.size()) {}

  Error add(const std::string& text) {
    for (const TensorSpec& s : specs_)  // names may hold a '='
      if (text.size() > s.name.size() && text.starts_with(s.name) && text[s.name.size()] == '=')
        return add_named(s.name, text.substr(s.name.size() + 1));
    const bool archive = text.ends_with(".npz");
    std::error_code none;
    if (text.find('=') != std::string::npos && !std::filesystem::exists(text, none))
      return make_error(DiagCode::invalid_argument,
                        "--input '{0}': the model has no input '{1}'; its inputs are {2}", text,
                        text.substr(0, text.find('=')), names_of(specs_));
    if (archive) return add_archive(text);
    if (specs_.size() == 1) return add_named(specs_[0].name, text);
    return make_error(DiagCode::invalid_argument,
                      "--input '{0}' does not say which input: write NAME={0} with one of {1}",
                      text, names_of(specs_));
  }

  Error put(size_t index, Tensor tensor, const std::string& from) {
    if (found_[index])
      return make_error(DiagCode::invalid_argument, "input '{0}' is given twice, by '{1}' too",
                        specs_[index].name, from);
    // .npy files store such types as u8.
    if (is_storage_only(specs_[index].dtype) && tensor.dtype == DType::u8)
      tensor.dtype = specs_[index].dtype;
    TW_TRY(bind_shape(specs_[index], tensor, from, symbols));
    found_[index] = std::move(tensor);
    return Error::success();
  }

  // Reads raw files after the others, which have bound the symbols: bytes alone do not say their
  // shape.
  Error put_raw() {
    for (const auto& [index, path] : raw_) {
      TW_ASSIGN(Tensor tensor, read_raw(specs_[index], path, symbols));
      TW_TRY(put(index, std::move(tensor), path));
    }
    return Error::success();
  }

  bool has_raw() const { return !raw_.empty(); }
  std::vector<std::optional<Tensor>>& found() { return found_; }
  Symbols symbols;
  std::vector<std::string> files;

 private:
  Error add_named(const std::string& name, const std::string& path) {
    const size_t index = *find_spec(specs_, name);
    files.push_back(path);
    if (is_raw(path)) {
      raw_.emplace_back(index, path);
      return Error::success();
    }
    if (!path.ends_with(".npz")) {
      TW_ASSIGN(Tensor tensor, is_picture(path) ? picture(index, path) : read_tensor(path));
      return put(index, std::move(tensor), path);
    }
    TW_ASSIGN(auto members, read_npz(path));
    auto member = members.find(name);
    if (member == members.end() && members.size() == 1) member = members.begin();
    if (member == members.end())
      return make_error(DiagCode::invalid_argument, "'{0}' has no member '{1}'", path, name);
    return put(index, std::move(member->second), path);
  }

  // A picture of the size that --dim gives, where the model leaves it free.
  Expected<Tensor> picture(size_t index, const std::string& path) {
    TensorSpec spec = specs_[index];
    for (Expr& dim : spec.dims)
      if (const std::string* name = dim.defined() ? var_name(dim) : nullptr)
        if (const auto size = symbols.find(*name); size != symbols.end()) dim = Expr(size->second);
    const auto given = forms_.of.find(spec.name);
    return load_picture(path, spec, given == forms_.of.end() ? InputForm() : given->second);
  }

  Error add_archive(const std::string& path) {
    files.push_back(path);
    TW_ASSIGN(auto members, read_npz(path));
    if (specs_.size() == 1 && members.size() == 1)
      return put(0, std::move(members.begin()->second), path);
    for (auto& [name, tensor] : members) {
      const std::optional<size_t> index = find_spec(specs_, name);
      if (!index)
        return make_error(DiagCode::invalid_argument,
                          "'{0}': member '{1}' is no input of the model; its inputs are {2}", path,
                          name, names_of(specs_));
      TW_TRY(put(*index, std::move(tensor), path + ":" + name));
    }
    return Error::success();
  }

  const std::vector<TensorSpec>& specs_;
  const InputForms& forms_;
  std::vector<std::optional<Tensor>> found_;
  std::vector<std::pair<size_t, std::string>> raw_;  // inputs and their files
};

Error check_bound(const std::vector<TensorSpec>& specs, const Symbols& symbols) {
  std::set<std::string> free;
  for (const TensorSpec& s : specs)
    visit_symbols(s, [&](const std::string& name) {
      if (!symbols.contains(name)) free.insert(name);
    });
  std::vector<Diag> list;
  for (const std::string& name : free)
    list.push_back({DiagCode::invalid_argument,
                    "the dimension '" + name + "' is free: give " + dim_flag(name) +
                        " or an input that has it",
                    {},
                    {}});
  return make_error(std::move(list));
}

TensorSpec spec_of(const tw_tensor_info& info, const tw_api& api) {
  TensorSpec spec;
  spec.name = info.name;
  spec.dtype = dtype_from_onnx(info.dtype).value_or(DType::f32);
  for (int32_t k = 0; k < info.rank; ++k) {
    const int64_t d = info.dims[k];
    if (d >= 0) spec.dims.push_back(Expr(d));
    else if (d >= -int64_t{api.symbol_count}) spec.dims.push_back(var(api.symbols[-1 - d]));
    else spec.dims.push_back(Expr());  // computed: an expression that the artifact keeps to itself
  }
  return spec;
}

}  // namespace

std::vector<TensorSpec> input_specs(const tw_api& api) {
  std::vector<TensorSpec> specs;
  for (int32_t i = 0; i < api.input_count; ++i) specs.push_back(spec_of(api.inputs[i], api));
  return specs;
}

Error bind_shape(const TensorSpec& spec, const Tensor& tensor, const std::string& from,
                 Symbols& symbols) {
  const auto wrong = [&](const std::string& what) {
    return make_error(Diag{DiagCode::invalid_argument,
                           "input '" + spec.name + "': " + what,
                           {from, 0, 0},
                           {"the model takes " + type_text(spec)}});
  };
  if (tensor.dtype != spec.dtype)
    return wrong(std::string("the file holds ") + dtype_name(tensor.dtype) + ", not " +
                 dtype_name(spec.dtype));
  if (tensor.shape.size() != spec.dims.size())
    return wrong("the shape is " + shape_text(tensor.shape));
  for (size_t i = 0; i < spec.dims.size(); ++i) {
    const Expr& dim = spec.dims[i];
    if (!dim.defined()) continue;
    const int64_t extent = tensor.shape[i];
    if (const std::string* name = var_name(dim)) {
      const auto [it, fresh] = symbols.emplace(*name, extent);
      if (!fresh && it->second != extent)
        return wrong("the shape is " + shape_text(tensor.shape) + ", but " + *name + " is " +
                     std::to_string(it->second) + " already");
    } else if (const std::optional<int64_t> fixed = as_const(dim); fixed && *fixed != extent) {
      return wrong("the shape is " + shape_text(tensor.shape));
    }
  }
  return Error::success();
}

Expected<Symbols> bind_dims(const std::vector<std::string>& texts,
                            const std::vector<TensorSpec>& specs) {
  TW_ASSIGN(const auto dims, parse_dims(texts));
  Symbols symbols;
  for (const auto& [text, value] : dims) {
    TW_ASSIGN(const std::string name, find_dim(text, specs));
    if (!symbols.emplace(name, value).second)
      return make_error(DiagCode::invalid_argument, "--dim gives '{0}' twice, once as '{1}'", name,
                        text);
  }
  return symbols;
}

Expected<Inputs> load_inputs(const std::vector<TensorSpec>& specs, const InputSources& flags) {
  InputReader reader(specs, flags.forms);
  TW_ASSIGN(reader.symbols, bind_dims(flags.dims, specs));
  for (const std::string& file : flags.files) TW_TRY(reader.add(file));
  if (!flags.data.empty()) {
    for (size_t i = 0; i < specs.size(); ++i) {
      const std::string path = stored_path(flags.data, "input", i);
      if (path.empty()) continue;
      TW_ASSIGN(Tensor tensor, read_tensor(path));
      reader.files.push_back(path);
      TW_TRY(reader.put(i, std::move(tensor), path));
    }
  }
  if (reader.has_raw()) {
    TW_TRY(check_bound(specs, reader.symbols));
    TW_TRY(reader.put_raw());
  }
  std::vector<Diag> missing;
  for (size_t i = 0; i < specs.size(); ++i)
    if (!reader.found()[i] && !flags.random)
      missing.push_back({DiagCode::invalid_argument,
                         "no data for input '" + specs[i].name + "', " + type_text(specs[i]),
                         {},
                         {"give --input " + specs[i].name + "=FILE, or --random SEED"}});
  TW_TRY(make_error(std::move(missing)));
  TW_TRY(check_bound(specs, reader.symbols));
  Inputs inputs;
  inputs.symbols = reader.symbols;
  inputs.files = std::move(reader.files);
  for (size_t i = 0; i < specs.size(); ++i) {
    if (!reader.found()[i]) {
      TW_ASSIGN(std::vector<int64_t> shape, shape_by(specs[i], inputs.symbols));
      reader.found()[i] = random_tensor(specs[i].dtype, std::move(shape), *flags.random, i);
    }
    inputs.tensors.push_back(std::move(*reader.found()[i]));
  }
  return inputs;
}

Error check_countable(const std::string& what, DType dtype, std::span<const int64_t> shape) {
  constexpr int64_t kMost = int64_t{1} << 40;
  int64_t bytes = dtype_bytes(dtype);
  bool fits = true;
  for (int64_t extent : shape)
    fits = fits && extent >= 0 && !__builtin_mul_overflow(bytes, extent, &bytes) && bytes <= kMost;
  if (fits) return Error::success();
  return make_error(DiagCode::limit, "{0}: {1} has more than 2^40 bytes, or a negative extent",
                    what, shape_text(shape));
}

Expected<Tensor> read_tensor(const std::string& path) {
  if (path.ends_with(".npy")) return read_npy(path);
  if (path.ends_with(".pb")) return read_tensor_proto(path);
  return make_error(
      DiagCode::invalid_argument,
      "'{0}': tensors are read from .npy, .npz and .pb files, bytes alone from .raw and .bin, "
      "pictures from .png and .jpg",
      path);
}

std::string stored_path(const std::string& dir, const std::string& stem, size_t index) {
  const std::string base = dir + "/" + stem + "_" + std::to_string(index);
  std::error_code none;
  for (const char* ending : {".pb", ".npy"})
    if (std::filesystem::exists(base + ending, none)) return base + ending;
  return "";
}

Expected<std::optional<Tensor>> read_stored(const std::string& dir, const std::string& stem,
                                            size_t index) {
  const std::string path = stored_path(dir, stem, index);
  if (path.empty()) return std::optional<Tensor>();
  TW_ASSIGN(Tensor tensor, read_tensor(path));
  return std::optional<Tensor>(std::move(tensor));
}

std::string output_path(const std::string& dir, const std::string& name) {
  std::string file = name;
  std::replace(file.begin(), file.end(), '/', '_');
  return dir + "/" + file + ".npy";
}

Error save_output(const std::string& path, const Tensor& tensor) {
  const std::string dir = std::filesystem::path(path).parent_path();
  std::error_code code;
  std::filesystem::create_directories(dir, code);
  if (code)
    return make_error(DiagCode::io, "cannot create the folder '{0}': {1}", dir, code.message());
  const std::string header = npy_header(tensor), payload = npy_payload(tensor);
  TW_ASSIGN(OutputFile file, OutputFile::create(path, header.size() + payload.size()));
  TW_TRY(file.write(0, header));
  TW_TRY(file.write(header.size(), payload));
  return file.commit();
}

Tensor random_tensor(DType dtype, std::vector<int64_t> shape, uint64_t seed, uint64_t stream) {
  static constexpr const char* kWords[] = {"a", "B c", "1", "d, e"};
  Tensor tensor = Tensor::zeros(dtype, std::move(shape));
  uint64_t state = seed;
  state = split_mix(state) ^ (stream * 0xd1342543de82ef95u);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const uint64_t bits = split_mix(state);
    if (dtype == DType::string)
      tensor.as<const char*>()[static_cast<size_t>(i)] = interned(kWords[bits >> 62]);
    else if (is_float(dtype)) tensor.set(i, static_cast<double>(bits >> 40) * 0x1p-23 - 1.0);
    else tensor.set_int(i, static_cast<int64_t>(bits >> 63));
  }
  return tensor;
}

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

std::string type_text(const TensorSpec& spec) {
  std::string text = std::string(dtype_name(spec.dtype)) + "[";
  for (size_t i = 0; i < spec.dims.size(); ++i)
    text += (i ? ", " : "") + (spec.dims[i].defined() ? to_string(spec.dims[i]) : std::string("?"));
  return text + "]";
}

}  // namespace tw
