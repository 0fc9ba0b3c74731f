// dlopen, tw_<name>_query, create, run, destroy: a program needs no other calls.
#include "compiled_model.h"

#include <dlfcn.h>

#include <cctype>

#include "fail.h"

namespace detect {
namespace {

// "dir/yolox-nano.so" -> "yolox_nano"
std::string name_of_file(const std::string& path) {
  std::string name = path.substr(path.find_last_of('/') + 1);
  name = name.substr(0, name.find_last_of('.'));
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return std::isdigit(static_cast<unsigned char>(name[0])) ? "_" + name : name;
}

Tensor make_output(const tw_tensor_info& info) {
  if (info.dtype != TW_F32) fail("output %s is not f32", info.name);
  Tensor tensor;
  tensor.dims.assign(info.dims, info.dims + info.rank);
  tensor.values.resize(element_count(tensor.dims));
  return tensor;
}

tw_tensor view(Tensor& tensor) {
  return {tensor.values.data(), tensor.values.size() * sizeof(float), TW_F32,
          static_cast<int32_t>(tensor.dims.size()), tensor.dims.data()};
}

}  // namespace

CompiledModel::CompiledModel(const std::string& path, std::string name) {
  // Without a slash dlopen would search the system's folders.
  library_ = dlopen((path.find('/') == std::string::npos ? "./" + path : path).c_str(),
                    RTLD_NOW | RTLD_LOCAL);
  if (!library_) fail("%s", dlerror());
  if (name.empty()) name = name_of_file(path);
  std::string symbol = "tw_" + name + "_query";
  auto query = reinterpret_cast<tw_query_fn>(dlsym(library_, symbol.c_str()));
  if (!query)
    fail("%s has no %s: --name gives the name that it was compiled with", path.c_str(),
         symbol.c_str());
  api_ = query(TW_ABI_VERSION);
  if (!api_) fail("%s does not serve ABI version %u", path.c_str(), TW_ABI_VERSION);
  tw_status status = api_->create(nullptr, &context_);
  if (status != TW_OK) fail("%s: %s", path.c_str(), api_->status_text(status));
}

CompiledModel::~CompiledModel() {
  api_->destroy(context_);
  dlclose(library_);
}

std::vector<Tensor> CompiledModel::run(Tensor& input) const {
  if (api_->input_count != 1 || api_->symbol_count != 0)
    fail("%s has not one input of fixed shape", api_->name);
  std::vector<Tensor> outputs;
  for (int32_t i = 0; i < api_->output_count; ++i) outputs.push_back(make_output(api_->outputs[i]));
  std::vector<tw_tensor> views;
  for (Tensor& output : outputs) views.push_back(view(output));
  tw_tensor input_view = view(input);
  tw_status status = api_->run(context_, &input_view, views.data());
  if (status != TW_OK) fail("%s: %s", api_->status_text(status), api_->last_error(context_));
  return outputs;
}

}  // namespace detect
