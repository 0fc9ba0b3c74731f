#include "driver/accuracy/samples.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include "driver/run/npz.h"
#include "driver/run/pictures.h"
#include "frontend/mapped_file.h"

namespace tw {
namespace {

namespace fs = std::filesystem;
using Maker = std::function<Expected<Inputs>()>;
using Named = std::map<std::string, Tensor>;  // tensors by input name

bool is_tensor(const fs::path& path) {
  return path.extension() == ".npy" || path.extension() == ".pb";
}

Expected<std::vector<fs::path>> entries(const std::string& folder) {
  std::error_code code;
  std::vector<fs::path> list;
  for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code))
    list.push_back(it->path());
  if (code)
    return make_error(DiagCode::io, "cannot read the folder '{0}': {1}", folder, code.message());
  std::ranges::sort(list);
  return list;
}

std::string file_name(std::string name) {
  std::ranges::replace(name, '/', '_');
  return name;
}

class SampleReader {
 public:
  SampleReader(const std::vector<TensorSpec>& specs, const InputForms& forms,
               std::vector<Maker>& makers)
      : specs_(specs), forms_(forms), makers_(makers) {}

  Error folder(const std::string& path) {
    TW_ASSIGN(const std::vector<fs::path> list, entries(path));
    TW_ASSIGN(const bool whole, one_file_an_input(path, list));
    if (whole) return Error::success();
    for (const fs::path& entry : list) {
      std::error_code none;
      if (fs::is_directory(entry, none)) {
        TW_ASSIGN(const std::vector<fs::path> inner, entries(entry));
        TW_ASSIGN(const bool sample, one_file_an_input(entry, inner));
        if (!sample)
          return make_error(DiagCode::invalid_argument,
                            "'{0}' has no file for each input: {1}, or input_0.npy, ...",
                            entry.string(), file_name(specs_[0].name) + ".npy");
      } else {
        TW_TRY(single(entry));
      }
    }
    if (makers_.empty())
      return make_error(DiagCode::invalid_argument,
                        "'{0}' has no samples: .npy, .npz, .pb, .png or .jpg files, "
                        "or folders with input_0.npy, ...",
                        path);
    return Error::success();
  }

  Error single(const fs::path& path) {
    if (path.extension() == ".npz") {
      TW_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
      TW_ASSIGN(Named named, parse_npz(file->bytes(), path));
      if (specs_.size() == 1 && named.size() == 1 && !named.contains(specs_[0].name))
        named = {{specs_[0].name, std::move(named.begin()->second)}};
      return add(std::move(named), path);
    }
    const bool picture = is_picture(path);
    if (!picture && !is_tensor(path)) return Error::success();
    if (specs_.size() != 1)
      return make_error(DiagCode::invalid_argument,
                        "'{0}': the model has {1} inputs: give .npz files, or a folder a sample",
                        path.string(), specs_.size());
    if (picture) {
      const auto given = forms_.of.find(specs_[0].name);
      const InputForm form = given == forms_.of.end() ? InputForm() : given->second;
      makers_.push_back([spec = specs_[0], form, path]() -> Expected<Inputs> {
        Inputs inputs;
        TW_ASSIGN(Tensor tensor, load_picture(path, spec, form));
        TW_TRY(bind_shape(spec, tensor, path, inputs.symbols));
        inputs.tensors.push_back(std::move(tensor));
        return inputs;
      });
      return Error::success();
    }
    Named named;
    TW_ASSIGN(named[specs_[0].name], read_tensor(path));
    return add(std::move(named), path);
  }

 private:
  // Adds the folder as one source of samples if every input has a file there, by name or by number.
  // False: some input has none.
  Expected<bool> one_file_an_input(const std::string& folder, const std::vector<fs::path>& list) {
    Named named;
    for (size_t i = 0; i < specs_.size(); ++i) {
      std::string path = stored_path(folder, "input", i);
      for (const fs::path& entry : list)
        if (path.empty() && is_tensor(entry) && entry.stem() == file_name(specs_[i].name))
          path = entry;
      if (path.empty()) return false;
      TW_ASSIGN(named[specs_[i].name], read_tensor(path));
    }
    TW_TRY(add(std::move(named), folder));
    return true;
  }

  // The number of samples that a tensor holds; 1 also where it does not fit, as bind_shape reports
  static int64_t runs_in(const TensorSpec& spec, const Tensor& tensor) {
    if (spec.dims.empty() || tensor.shape.size() != spec.dims.size() || !spec.dims[0].defined())
      return 1;
    const std::optional<int64_t> rows = as_const(spec.dims[0]);
    if (!rows || *rows < 1 || tensor.shape[0] < 1 || tensor.shape[0] % *rows != 0) return 1;
    return tensor.shape[0] / *rows;
  }

  Error add(Named named, const std::string& from) {
    std::vector<Tensor> tensors;
    int64_t runs = 0;
    for (const TensorSpec& spec : specs_) {
      const auto found = named.find(spec.name);
      if (found == named.end())
        return make_error(DiagCode::invalid_argument, "'{0}' has no input '{1}', {2}", from,
                          spec.name, type_text(spec));
      const int64_t own = runs_in(spec, found->second);
      if (runs != 0 && own != runs)
        return make_error(DiagCode::invalid_argument,
                          "'{0}': input '{1}' is {2} samples, the one before it {3}", from,
                          spec.name, own, runs);
      runs = own;
      tensors.push_back(std::move(found->second));
    }
    for (int64_t run = 0; run < runs; ++run) {
      Inputs inputs;
      for (size_t i = 0; i < specs_.size(); ++i) {
        Tensor part{tensors[i].dtype, tensors[i].shape, {}};
        if (runs > 1) part.shape[0] /= runs;
        const auto size = static_cast<ptrdiff_t>(tensors[i].bytes.size()) / runs;
        part.bytes.assign(tensors[i].bytes.begin() + run * size,
                          tensors[i].bytes.begin() + (run + 1) * size);
        TW_TRY(bind_shape(specs_[i], part, from, inputs.symbols));
        inputs.tensors.push_back(std::move(part));
      }
      makers_.push_back([inputs = std::make_shared<const Inputs>(
                             std::move(inputs))]() -> Expected<Inputs> { return *inputs; });
    }
    return Error::success();
  }

  const std::vector<TensorSpec>& specs_;
  const InputForms& forms_;
  std::vector<Maker>& makers_;
};

// The caller's part of the forms: it fits a picture into its tensor, and the library does the rest.
InputForms forms_of_caller(const InputForms& given) {
  InputForms forms;
  for (const auto& [name, form] : given.of) {
    InputForm own;
    own.fit = form.fit, own.fill = form.fill, own.centered = form.centered;
    forms.of.emplace(name, own);
  }
  return forms;
}

}  // namespace

Expected<SampleSet> SampleSet::open(const std::string& path, const std::vector<TensorSpec>& specs,
                                    const InputForms& forms) {
  SampleSet samples;
  SampleReader reader(specs, forms, samples.makers_);
  TW_TRY(path.ends_with(".npz") ? reader.single(path) : reader.folder(path));
  return samples;
}

Expected<SampleSet> SampleSet::random(int count, const std::vector<TensorSpec>& specs,
                                      const std::vector<std::string>& dims) {
  SampleSet samples;
  for (int i = 0; i < count; ++i)
    samples.makers_.push_back([specs, dims, seed = static_cast<uint64_t>(i)] {
      InputSources sources;
      sources.random = seed;
      sources.dims = dims;
      return load_inputs(specs, sources);
    });
  return samples;
}

Expected<SampleSet> samples_for(const SampleRequest& request,
                                const std::vector<TensorSpec>& specs) {
  constexpr int kSeeded = 4;
  SampleSet samples;
  if (request.data.empty()) {
    TW_ASSIGN(samples, SampleSet::random(kSeeded, specs, request.dims));
  } else {
    TW_ASSIGN(samples, SampleSet::open(request.data, specs, forms_of_caller(request.forms)));
  }
  if (request.most > 0) samples.keep(static_cast<size_t>(request.most));
  return samples;
}

}  // namespace tw
