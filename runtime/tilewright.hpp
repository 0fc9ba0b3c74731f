// The C interface (tilewright.h) for C++20: objects close what they open, arrays are spans,
// failures are exceptions. It is one header. A program that loads libraries by name links with -ldl
// where its C library keeps dlopen there.
//
//   tilewright::Model model("digits.so");
//   tilewright::Context context(model);
//   context.run({tilewright::tensor(image, {1, 1, 8, 8})}, {tilewright::tensor(logits, {1, 10})});
//
// Licence: Apache-2.0 with the LLVM exception.
#pragma once
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tilewright.h"

namespace tilewright {

class Error : public std::runtime_error {
 public:
  Error(tw_status status, const std::string& text) : std::runtime_error(text), status_(status) {}
  tw_status status() const noexcept { return status_; }

 private:
  tw_status status_;
};

// The element type of a C++ type. Types of 8 and 16 bits that C++ lacks are passed as bytes, with
// their tw_dtype.
template <class T>
constexpr tw_dtype dtype_of() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, float>) return TW_F32;
  else if constexpr (std::is_same_v<U, double>) return TW_F64;
  else if constexpr (std::is_same_v<U, bool>) return TW_BOOL;
  else if constexpr (std::is_same_v<U, tw_string>) return TW_STRING;
  else {
    static_assert(std::is_integral_v<U> && sizeof(U) <= 8, "an element type of tensors");
    constexpr bool is_signed = std::is_signed_v<U>;
    if constexpr (sizeof(U) == 1) return is_signed ? TW_I8 : TW_U8;
    else if constexpr (sizeof(U) == 2) return is_signed ? TW_I16 : TW_U16;
    else if constexpr (sizeof(U) == 4) return is_signed ? TW_I32 : TW_U32;
    else return is_signed ? TW_I64 : TW_U64;
  }
}

// A dense row-major tensor over the caller's memory, with extents of its own. The library writes to
// outputs only.
class Tensor {
 public:
  Tensor(void* data, std::size_t bytes, tw_dtype dtype, std::vector<int64_t> dims)
      : data_(data), bytes_(bytes), dtype_(dtype), dims_(std::move(dims)) {}
  tw_tensor view() const {
    return {data_, bytes_, dtype_, static_cast<int32_t>(dims_.size()), dims_.data()};
  }

 private:
  void* data_;
  std::size_t bytes_;
  tw_dtype dtype_;
  std::vector<int64_t> dims_;
};

template <class Range>
Tensor tensor(Range&& values, std::vector<int64_t> dims) {
  std::span span(values);
  using T = typename decltype(span)::element_type;
  return {const_cast<std::remove_cv_t<T>*>(span.data()), span.size_bytes(), dtype_of<T>(),
          std::move(dims)};
}

// A compiled model: a library that is loaded, or one that the program is linked with. A copy is the
// same model. The library is closed with the last copy and the last context.
class Model {
 public:
  explicit Model(const std::string& path) {
    // dlopen searches the system's folders for a name without '/'.
    const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
    library_ = {dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL), [](void* library) {
                  if (library) dlclose(library);
                }};
    if (!library_) throw Error(TW_E_ARGUMENT, dlerror());
    use(reinterpret_cast<tw_query_fn>(dlsym(library_.get(), TW_QUERY_SYMBOL)), path);
  }
  explicit Model(tw_query_fn query) { use(query, "the library"); }

  const tw_api& api() const { return *api_; }
  std::span<const tw_tensor_info> inputs() const {
    return {api_->inputs, static_cast<std::size_t>(api_->input_count)};
  }
  std::span<const tw_tensor_info> outputs() const {
    return {api_->outputs, static_cast<std::size_t>(api_->output_count)};
  }
  std::span<const char* const> symbols() const {
    return {api_->symbols, static_cast<std::size_t>(api_->symbol_count)};
  }
  // The extents of output i for these values of the symbols; -1: data decide.
  std::vector<int64_t> output_dims(int32_t i, std::span<const int64_t> symbols = {}) const {
    if (i < 0 || i >= api_->output_count || symbols.size() != this->symbols().size())
      throw Error(TW_E_ARGUMENT, "output_dims: no such output, or not a value for each symbol");
    std::vector<int64_t> dims(static_cast<std::size_t>(api_->outputs[i].rank));
    api_->output_dims(i, symbols.data(), dims.data());
    return dims;
  }
  uint64_t arena_bytes(std::span<const int64_t> symbols = {}) const {
    if (symbols.size() != this->symbols().size())
      throw Error(TW_E_ARGUMENT, "arena_bytes: not a value for each symbol");
    return api_->arena_bytes(symbols.data());
  }

 private:
  void use(tw_query_fn query, const std::string& name) {
    api_ = query ? query(TW_ABI_VERSION) : nullptr;
    if (!api_) throw Error(TW_E_VERSION, name + " is no compiled model of this ABI version");
  }

  std::shared_ptr<void> library_;
  const tw_api* api_ = nullptr;
};

struct Options {
  int32_t threads = 0;              // 0: as many as the process may use
  const tw_parallel* parallel = nullptr;  // the caller's thread pool; lives as long as the context
  std::span<std::byte> arena = {};        // 64-byte aligned; lives as long as the context
  std::span<const int64_t> symbols = {};  // the largest sizes that the context will see
  const tw_queue* queue = nullptr;
  const char* weights = nullptr;  // path of their file, where it is not beside the library
};

// A context runs one call at a time. Several contexts may run at once.
class Context {
 public:
  explicit Context(Model model, const Options& o = {}) : model_(std::move(model)) {
    if (!o.symbols.empty() && o.symbols.size() != model_.symbols().size())
      throw Error(TW_E_ARGUMENT, "create: not a value for each symbol");
    tw_options options = {};
    options.size = sizeof options;
    options.threads = o.threads;
    options.parallel = o.parallel;
    options.arena = o.arena.data();
    options.arena_bytes = o.arena.size();
    options.symbols = o.symbols.empty() ? nullptr : o.symbols.data();
    options.queue = o.queue;
    options.weights = o.weights;
    tw_context* context = nullptr;
    const tw_status status = model_.api().create(&options, &context);
    if (status != TW_OK) fail(status, nullptr);
    context_.reset(context);
  }

  // Throws Error. A cancelled run ends with TW_E_CANCELLED.
  void run(std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
    if (inputs.size() != model_.inputs().size() || outputs.size() != model_.outputs().size())
      throw Error(TW_E_ARGUMENT,
                  "the model has " + std::to_string(model_.inputs().size()) + " inputs and " +
                      std::to_string(model_.outputs().size()) + " outputs");
    const std::vector<tw_tensor> in = views(inputs), out = views(outputs);
    const tw_status status = model_.api().run(context_.get(), in.data(), out.data());
    if (status != TW_OK) fail(status, context_.get());
  }
  void run(std::initializer_list<Tensor> inputs, std::initializer_list<Tensor> outputs) {
    run(std::span(inputs.begin(), inputs.size()), std::span(outputs.begin(), outputs.size()));
  }
  // Ends the run in progress; callable from any thread. False: the library is too old to have
  // cancel.
  bool cancel() noexcept {
    const tw_api& api = model_.api();
    return api.size > offsetof(tw_api, cancel) && api.cancel(context_.get()) == TW_OK;
  }
  tw_context* get() const noexcept { return context_.get(); }

 private:
  struct Destroy {
    const tw_api* api;
    void operator()(tw_context* context) const { api->destroy(context); }
  };
  static std::vector<tw_tensor> views(std::span<const Tensor> tensors) {
    std::vector<tw_tensor> list;
    for (const Tensor& tensor : tensors) list.push_back(tensor.view());
    return list;
  }
  [[noreturn]] void fail(tw_status status, const tw_context* context) const {
    const std::string text = model_.api().last_error(context);
    throw Error(status, model_.api().status_text(status) + (text.empty() ? "" : ": " + text));
  }

  Model model_;
  std::unique_ptr<tw_context, Destroy> context_{nullptr, Destroy{&model_.api()}};
};

}  // namespace tilewright
