// Opens a compiled model in this process with dlopen. It finds the query function by
// TW_QUERY_SYMBOL, so the caller need not know the model's name.
#pragma once
#include <string>

#include "packager/integrity.h"
#include "runtime/tilewright.h"
#include "support/diag.h"

namespace tw {

class LoadedModel {
 public:
  // Errors: no file, not a library for this machine, no tw_query, another ABI version, a CPU that
  // lacks features, damaged bytes.
  static Expected<LoadedModel> open(const std::string& path,
                                    Integrity integrity = Integrity::check);
  LoadedModel(LoadedModel&& other) noexcept;
  LoadedModel& operator=(LoadedModel&&) = delete;
  ~LoadedModel();  // contexts must be destroyed before

  const tw_api& api() const { return *api_; }

 private:
  LoadedModel(void* handle, const tw_api* api) : handle_(handle), api_(api) {}
  void* handle_;
  const tw_api* api_;
};

}  // namespace tw
